"""Which source lines computed what memory holds.

Imports `threads` and what is below.
"""
