"""What a model needs of a GPU's memory, by formula from a description of it.

Imports no other room.
"""
