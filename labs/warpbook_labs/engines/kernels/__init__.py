"""Kernels on a GPU, in a process without host code of a learner.

Imports no room beside it.
"""
