"""The hub's database: its tables, how it is opened, and how writes are committed.

Imports no other room.
"""
