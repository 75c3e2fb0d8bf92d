"""NVIDIA's compiler for kernels, which needs no driver."""
