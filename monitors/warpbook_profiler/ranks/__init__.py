"""The traces of several ranks of one job, beside one another.

Imports `facts` and what is below.
"""
