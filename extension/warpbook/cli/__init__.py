"""The `warpbook` command."""
