"""Windows of a million events, at every width.

Imports `facts` and what is below.
"""
