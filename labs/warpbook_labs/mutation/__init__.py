"""Mutants: right solutions with one mistake each, which measure a lab's cases.

Imports `grading`, `lab` and `results`.
"""
