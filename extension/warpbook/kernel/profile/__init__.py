"""The magics and functions that profile: their options, source and delivery.

Imports `trying`, `live`, `runs` and `link`.
"""
