"""Cases of a lab: drawn, prepared, and held against what is right.

Imports `lab`.
"""
