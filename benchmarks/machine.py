"""The machine that a figure was measured on, in one line."""

from __future__ import annotations

import importlib.metadata
import platform
from datetime import datetime, timezone

import psutil

_PACKAGES = ("jupyter_server", "tornado", "nvidia-ml-py")


def describe_machine() -> str:
    """Date, processor, memory and the versions that matter."""
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in _PACKAGES)
    return (
        f"{datetime.now(timezone.utc):%Y-%m-%d}; {psutil.cpu_count()} cores "
        f"({_processor()}), {psutil.virtual_memory().total / 2**30:.0f} GiB; "
        f"{platform.system()} {platform.release()}, Python "
        f"{platform.python_version()}, {versions}."
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
