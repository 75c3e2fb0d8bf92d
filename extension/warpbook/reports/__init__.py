"""Reports as text and as HTML, for terminals, notebooks and files.

Imports no other room.
"""
