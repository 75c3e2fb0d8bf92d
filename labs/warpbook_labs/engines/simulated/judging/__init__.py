"""Runs and judges what was asked of the simulated machine; trusts nothing of it.

Imports no room beside it.
"""
