"""Routes of labs and of the courses of a hub.

Imports `records` and what is below.
"""
