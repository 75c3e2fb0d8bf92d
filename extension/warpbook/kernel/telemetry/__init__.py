"""What the GPUs do now: `%gpu`, the Monitor, the memory calculator.

Imports `link`.
"""
