"""A machine with a GPU that is not there: what it is asked, recorded and judged.

Imports no room beside it.
"""
