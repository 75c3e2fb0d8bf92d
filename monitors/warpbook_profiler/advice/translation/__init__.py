"""Code of a cell in other words: NumPy's as torch's, a loop over rows as one batch.

Imports `code`, `rewriting`, and what the room around it imports.
"""
