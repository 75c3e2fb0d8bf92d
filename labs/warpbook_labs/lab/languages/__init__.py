"""What labs of each language look like: files, checks of `lab.toml`, what they need.

Imports `python` and `triton`.
"""
