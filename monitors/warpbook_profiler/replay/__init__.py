"""The bare run: a trace replayed without the profiler's part.

Imports `facts` and what is below; what judges it is above.
"""
