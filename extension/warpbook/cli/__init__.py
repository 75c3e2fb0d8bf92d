"""The `warpbook` command.

Imports `backup`, `mcp`, `reports` and `server`.
"""
