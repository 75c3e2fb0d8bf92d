"""The runs of one piece of code: recorded, timed without the profiler, shown.

Imports `link`.
"""
