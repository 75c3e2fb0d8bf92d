"""`warpbook labs`: its arguments, actions and what they print.

Imports the rest of `warpbook.cli` for errors and JSON.
"""
