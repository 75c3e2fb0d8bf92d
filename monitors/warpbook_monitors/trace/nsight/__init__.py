"""What NVIDIA's Nsight Systems and Nsight Compute export, read as far as it is open."""
