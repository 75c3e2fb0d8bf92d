"""A cell's source, read and edited on its syntax tree, without a trace.

Imports `facts` and `model`; the rest of `advice`, and `techniques`, import it.
"""
