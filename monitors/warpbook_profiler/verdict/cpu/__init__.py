"""What held a program back that put no work on a GPU.

Imports `techniques`, `advice`, `facts`, `events` and `model`.
"""
