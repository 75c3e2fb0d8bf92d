"""CUPTI's PC sampling, the source lines that samples are of, and what they mean.

Imports `model` alone, and no torch.
"""
