"""What NVIDIA's Nsight Systems and Nsight Compute export.

Imports `capture`, `events` and `model`.
"""
