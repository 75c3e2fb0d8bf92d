"""Techniques that free the host, so that the GPU waits for it less.

Imports `gpu` and `models`.
"""
