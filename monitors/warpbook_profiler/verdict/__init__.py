"""Causes with the time that each explains, and the one that leads.

Imports `techniques`, `replay` and what is below.
"""
