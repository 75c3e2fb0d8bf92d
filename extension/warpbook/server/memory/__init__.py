"""Who holds a GPU's memory, where it is heading, and who held it when it ran out.

Imports `records` and what is below.
"""
