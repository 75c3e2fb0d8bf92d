"""What was read: an hour in memory, and a span of it as columns and figures.

Imports `verdicts`.
"""
