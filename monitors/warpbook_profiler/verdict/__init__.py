"""Causes with the time that each explains, and the one that leads.

Imports `replay`, `facts` and what is below.
"""
