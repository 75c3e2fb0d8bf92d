"""The optimisation checklist: what a profiled window uses of it, and what it misses.

Imports `advice` and what is below.
"""
