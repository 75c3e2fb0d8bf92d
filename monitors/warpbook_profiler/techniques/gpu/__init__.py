"""Techniques that make work on the GPU less or faster.

Imports no room beside it.
"""
