"""torch's profiler around a cell, and what work takes on a GPU and its host.

The only room that imports torch. Imports `facts` and what is below.
"""
