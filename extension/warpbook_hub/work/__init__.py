"""What learners hand in, what it is worth, and what instructors decide about it.

Imports `course`, `database`, `notices`, `queue` and `rules`.
"""
