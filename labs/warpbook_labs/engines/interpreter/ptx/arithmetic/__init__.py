"""Registers of all threads, and the instructions that compute with them.

Imports `text`.
"""
