"""Frames to viewers: selections, the broadcaster, demand, and which kernels run.

Imports `web`.
"""
