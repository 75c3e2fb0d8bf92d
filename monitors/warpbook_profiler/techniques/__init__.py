"""One module for each kind of change: what shows it, and what it edits.

Imports `advice`; only its registry imports this room.
"""
