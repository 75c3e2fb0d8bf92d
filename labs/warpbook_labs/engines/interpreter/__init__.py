"""Kernels without a GPU: PTX and Triton, interpreted.

Imports no room beside it.
"""
