"""The Jupyter server extension: reads the GPUs once and streams to every viewer.

Imports `figures`, `mcp` and `reports`.
"""
