"""Leases of GPUs for notebooks: the line, the calendar, and who has what until when.

Imports `database`.
"""
