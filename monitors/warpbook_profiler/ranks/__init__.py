"""The traces of several ranks of one job, beside one another.

Imports `verdict` and what is below.
"""
