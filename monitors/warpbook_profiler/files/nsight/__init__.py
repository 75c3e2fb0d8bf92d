"""What NVIDIA's Nsight Systems and Nsight Compute export.

Imports `report` and what is below.
"""
