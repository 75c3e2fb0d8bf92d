"""Functions of a learner that answer questions.

Imports no room beside it.
"""
