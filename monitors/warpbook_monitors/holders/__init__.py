"""Who holds which GPU of this node, and what it did for them.

Imports `nvml` and `sampling`.
"""
