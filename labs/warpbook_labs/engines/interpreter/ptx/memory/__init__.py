"""Memory: what is in it, who may see it when, data races, and what accesses cost.

Imports `arithmetic` and `text`.
"""
