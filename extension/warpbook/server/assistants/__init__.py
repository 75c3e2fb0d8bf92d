"""The route by which an assistant asks, with a person's own rights.

Imports `reports` and what is below; `warpbook.mcp` has the tools.
"""
