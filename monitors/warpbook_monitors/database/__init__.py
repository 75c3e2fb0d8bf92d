"""Databases on disk: SQL scripts, and the steps from one format to the next.

Imports no other room.
"""
