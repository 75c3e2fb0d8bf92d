"""Kernels in Triton: read, compiled, and run by its interpreter.

Imports `ptx`.
"""
