"""What is kept: reports, records and their forms, and plain requests about them.

Imports `stream` and `web`.
"""
