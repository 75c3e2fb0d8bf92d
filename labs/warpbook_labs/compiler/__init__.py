"""NVIDIA's compiler for kernels, which needs no driver.

Imports `cases`, `lab` and `sandbox`.
"""
