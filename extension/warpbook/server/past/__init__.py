"""A span of history as figures, for pages and as a file.

Imports `records` and what is below.
"""
