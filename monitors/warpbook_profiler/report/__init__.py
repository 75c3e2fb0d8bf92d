"""A profile in words, once: titles, tables and sentences of every view.

Imports `verdict`, `compare` and `ranks`.
"""
