"""What held a program back that put no work on a GPU.

Imports `advice`, `facts`, `events` and `model`.
"""
