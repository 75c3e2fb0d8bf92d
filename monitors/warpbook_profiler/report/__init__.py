"""A profile in words, once: titles, tables and sentences of every view.

Imports `files`, `ranks` and what is below.
"""
