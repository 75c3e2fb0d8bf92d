"""CUPTI's PC sampling, and the source lines that its samples are of.

Imports `model` alone, and no torch.
"""
