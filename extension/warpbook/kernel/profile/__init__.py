"""The magics and functions that profile: their options, source and delivery.

Imports `live`, `runs` and `link`.
"""
