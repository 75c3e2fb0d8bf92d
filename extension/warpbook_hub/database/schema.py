"""All tables of a hub's database, in an order in which each follows what it names.

A later step's tables are in a module of their own, which takes the earlier ones'
`METADATA`; the last of these modules is imported here.
"""

from __future__ import annotations

from sqlalchemy import Table

from warpbook_hub.database import competition_tables

TABLES: tuple[Table, ...] = tuple(competition_tables.METADATA.tables.values())
