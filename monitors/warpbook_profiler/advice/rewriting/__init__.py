"""Liberal edits, which only runs on copies tell right from wrong.

Imports `code`, `translation`, and what the room around it imports.
"""
