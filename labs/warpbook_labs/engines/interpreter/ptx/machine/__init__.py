"""A GPU for one program: launches of its kernels.

The top of the interpreter.

Imports `arithmetic`, `lines`, `memory`, `text` and `threads`.
"""
