"""The machine's NVIDIA GPUs, through NVML: one gate, and what is asked through it.

Imports no other room.
"""
