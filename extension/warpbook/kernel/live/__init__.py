"""A long cell: profiled in windows of some steps while it runs.

Imports `runs` and `link`.
"""
