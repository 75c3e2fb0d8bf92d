"""Liberal edits of loops, which only runs on copies tell right from wrong.

Imports what the room around it imports.
"""
