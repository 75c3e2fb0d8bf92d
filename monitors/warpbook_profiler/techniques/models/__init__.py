"""Techniques for models: their layers, attention, caches and training as a whole.

Imports `gpu`.
"""
