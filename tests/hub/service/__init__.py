"""The course service under a real JupyterHub, as `warpbook hub` starts both."""
