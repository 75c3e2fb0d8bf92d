"""What assistants ask a person to allow in an open page, and what came of it.

Imports `stream`.
"""
