"""PyTorch itself, built for the CPU, as it would be with one GPU: recorded.

Imports `judging`.
"""
