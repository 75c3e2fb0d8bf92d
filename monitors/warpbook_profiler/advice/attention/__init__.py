"""Attention by hand, read and edited on a syntax tree.

Imports `code`; `candidates` and `techniques` import it.
"""
