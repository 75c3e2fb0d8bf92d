"""The extension under a real JupyterHub."""
