"""A GPU lab inside JupyterLab: what the chip does, what holds a cell back."""

from warpbook._version import __version__

__all__ = ["__version__"]
