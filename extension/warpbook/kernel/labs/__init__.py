"""Labs in a notebook.

Imports `runs` and `link`.
"""
