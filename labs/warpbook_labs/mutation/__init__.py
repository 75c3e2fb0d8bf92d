"""Mutants: right sources with one mistake each, for a lab's cases and for questions.

Imports `grading`, `lab` and `results`.
"""
