"""What follows from events alone: calls, kernels, idle time, work, paths, steps.

Imports `events` and `model`.
"""
