"""Techniques that take another operation of torch for the same result.

Imports nothing of the other rooms here.
"""
