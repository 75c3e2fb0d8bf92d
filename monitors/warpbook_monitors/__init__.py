"""Reads GPUs and hosts, and keeps what was read; knows nothing of Jupyter."""
