"""Techniques for what comes to the GPU: where it is made, and how it is copied.

Imports `host`.
"""
