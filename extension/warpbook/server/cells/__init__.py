"""What each cell cost, worded once.

Imports `memory`, `past` and what is below.
"""
