"""Kernels without a GPU: PTX and Triton, interpreted."""
