"""The optimisation checklist: what a profiled window uses of it, and what it misses.

Imports `files`, `techniques` and what is below.
"""
