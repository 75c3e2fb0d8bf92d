"""Which source lines computed what memory holds.

Imports `memory` and `text`.
"""
