"""What was seen, on disk: the history of the GPUs, and records of cells and alerts.

Imports `database`, `history`, `recordings` and `verdicts`.
"""
