"""The `warpbook` command.

Imports `backup` and `reports`.
"""
