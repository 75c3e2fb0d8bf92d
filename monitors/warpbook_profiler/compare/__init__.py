"""Two runs beside one another: whether they can be compared, and what differs.

Imports `verdict` and what is below.
"""
