"""What leaves the hub: grades, records and sources.

Imports `course`, `database`, `rules` and `work`.
"""
