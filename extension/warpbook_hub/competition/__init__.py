"""Competitions: boards of the fastest, which learners join by a pseudonym.

Imports `course`, `database`, `queue` and `rules`.
"""
