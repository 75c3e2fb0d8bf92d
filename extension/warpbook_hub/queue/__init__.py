"""Jobs that wait for a grader, and the leases of those that run.

Imports `database`, `leases`, `notices` and `rules`.
"""
