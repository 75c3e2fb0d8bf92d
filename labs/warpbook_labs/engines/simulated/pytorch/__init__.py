"""PyTorch itself, built for the processor, as it would be with one GPU: recorded."""
