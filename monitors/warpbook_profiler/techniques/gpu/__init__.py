"""Techniques that make work on the GPU less or faster."""
