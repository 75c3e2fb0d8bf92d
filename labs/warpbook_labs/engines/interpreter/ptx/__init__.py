"""Runs compiled CUDA kernels (PTX) without a GPU, and says what is wrong with them.

Imports no room beside it.
"""
