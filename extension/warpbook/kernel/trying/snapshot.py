"""The state in which each run begins, and which the person has back at the end."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
import torch

from warpbook.kernel.trying.reach import Reached
from warpbook.kernel.trying.saved_globals import SavedGlobals
from warpbook.kernel.trying.saved_objects import SavedNamespace, SavedObjects
from warpbook.kernel.trying.saved_tensors import SavedTensors


class Snapshot:
    """All that a cell can change, as it was."""

    def __init__(
        self, namespace: dict[str, Any], reached: Reached, room_for_a_run_bytes: int = 0
    ) -> None:
        """Copy it.

        Args:
            namespace: the person's.
            reached: what the cell's names lead to.
            room_for_a_run_bytes: what a run needs on the GPU beside the copy.

        Raises:
            NoRoom: there is no memory for a copy.
        """
        self.tensors = SavedTensors(reached, room_for_a_run_bytes)
        self.objects = SavedObjects(reached)
        self.names = SavedNamespace(namespace)
        self.globals = SavedGlobals()

    def restore(self) -> None:
        """Put all of it back; an interrupt waits until that is done."""
        with uninterrupted():
            with torch.inference_mode(False), torch.no_grad():
                self.names.restore()
                self.objects.restore()
                self.tensors.restore()
            self.globals.restore()

    def changed(
        self, written: bool = False
    ) -> list[tuple[str, torch.Tensor | np.ndarray[Any, Any]]]:
        """Give tensors and arrays that hold something else, or tensors also written."""
        with torch.no_grad():
            return self.tensors.changed(written)

    def differences(self) -> list[str]:
        """Name what is not as it was; none after `restore`."""
        return [
            *self.names.differences(),
            *self.objects.differences(),
            *self.tensors.differences(),
            *self.globals.differences(),
        ]


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Have an interrupt wait for the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before = signal.getsignal(signal.SIGINT)
    if before is None:
        # C's own handler can't be put back
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        signal.raise_signal(signal.SIGINT)
