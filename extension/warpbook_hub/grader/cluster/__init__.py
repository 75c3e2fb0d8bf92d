"""Grading on the machines of a Ray cluster: how it is started, and its engine.

Imports no room beside it.
"""
