"""A GPU lab inside JupyterLab: what the chip does, what holds a cell back."""

from warpbook._version import __version__

__all__ = ["__version__"]


def _jupyter_server_extension_points() -> list[dict[str, object]]:
    # only a Jupyter server asks; a kernel never imports the server part
    from warpbook.server.app import WarpbookApp  # noqa: PLC0415

    return [{"module": "warpbook", "app": WarpbookApp}]
