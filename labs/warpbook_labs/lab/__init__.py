"""What a lab is: its specification, its files, its own Python.

Imports `sandbox`.
"""
