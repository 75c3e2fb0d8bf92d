"""The rules of a course as functions of values: no database, no clock.

Imports no other room.
"""
