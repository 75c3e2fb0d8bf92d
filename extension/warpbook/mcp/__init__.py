"""Tools for assistants, by the Model Context Protocol: what they ask, and answers.

Imports `reports`.
"""
