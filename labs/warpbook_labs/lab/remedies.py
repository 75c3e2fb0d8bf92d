"""How to install what labs may need; a module that jailed processes load, too."""

from __future__ import annotations

#: brings what labs in Triton need
INSTALL_TRITON = "pip install 'warpbook-labs[triton]'"
#: brings what labs on host code need
INSTALL_TORCH = "pip install 'warpbook-labs[torch]'"
