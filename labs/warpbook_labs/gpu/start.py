"""Starts a program that will use the GPU, with CUDA's driver starting beside Python.

    python -m warpbook_labs.gpu.start MODULE

A context takes the driver some tenths of a second, and what is imported takes Python as
long: neither waits for the other. This module imports nothing that takes time.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import sys
import threading


def main() -> None:
    """Run the `main` of the module that is named."""
    threading.Thread(target=_make_context, daemon=True).start()
    importlib.import_module(sys.argv[1]).main()


def _make_context() -> None:
    """Make the context that the program will ask for; it also tells what is wrong."""
    with contextlib.suppress(OSError, AttributeError):
        driver = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        # the first device that this process sees; no call here keeps Python waiting
        if driver.cuInit(0) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)


if __name__ == "__main__":
    main()
