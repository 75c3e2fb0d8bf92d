"""A GPU for one program: launches of its kernels.

The top of the interpreter.
"""
