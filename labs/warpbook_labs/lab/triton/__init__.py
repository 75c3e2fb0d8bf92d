"""What a Triton source may say, and how it is launched.

Imports `python`.
"""
