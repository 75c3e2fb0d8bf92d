"""Liberal edits, which only runs on copies tell right from wrong.

Imports `code`, and what the room around it imports.
"""
