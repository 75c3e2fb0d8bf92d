"""torch's profiler around a cell, and the measured ceilings of a GPU.

The only room that imports torch. Imports `facts` and what is below.
"""
