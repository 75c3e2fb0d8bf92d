"""Host code on a GPU, beside a process that owns buffers, clock and verdict.

Imports no room beside it.
"""
