"""Which kernel and which notebook a cell belongs to."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any


def kernel_id(shell: Any) -> str:
    """Give the id by which the server knows this kernel; empty in plain IPython."""
    # ipykernel keeps "kernel-<id>.json" here; it is no dependency of ours
    path = str(shell.config.get("IPKernelApp", {}).get("connection_file", ""))
    stem = PurePath(path).stem
    return stem.removeprefix("kernel-") if stem.startswith("kernel-") else ""


def notebook_path() -> str | None:
    """Give the notebook's path, where Jupyter told it to the kernel."""
    return os.environ.get("JPY_SESSION_NAME") or None
