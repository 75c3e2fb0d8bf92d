"""What held a program back that put no work on a GPU.

Imports `facts`, `events` and `model`.
"""
