"""Who holds a GPU's memory, where it is heading, and what to do when it ran out.

Imports no other room.
"""
