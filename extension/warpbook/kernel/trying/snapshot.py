"""The state in which each run begins, and which the person has back at the end."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch

from warpbook.kernel.trying.global_settings import global_settings
from warpbook.kernel.trying.kept import MISSING, Kept, keep_names
from warpbook.kernel.trying.reach import Reached
from warpbook.kernel.trying.saved_tensors import Array, SavedTensor, keep_memory


class Snapshot:
    """All that a cell can change, as it was."""

    def __init__(
        self, namespace: dict[str, Any], reached: Reached, run_bytes: int = 0
    ) -> None:
        """Copy it.

        Args:
            namespace: the person's.
            reached: what the cell's names lead to.
            run_bytes: what a run needs on the GPU beside the copy.

        Raises:
            Refused: there is no memory for a copy.
        """
        self._names = keep_names(namespace)
        self._memory, self._arrays = keep_memory(
            reached.tensors, reached.arrays, run_bytes
        )
        self._tensors = [SavedTensor(*entry) for entry in reached.tensors]
        # places before contents: a tensor may hold its elements elsewhere now
        self._objects: list[Kept | SavedTensor] = [*reached.objects, *self._tensors]
        self._globals = list(global_settings())

    def restore(self) -> None:
        """Put all of it back; an interrupt waits until that is done."""
        with uninterrupted():
            with torch.inference_mode(False), torch.no_grad():
                for kept in (self._names, *self._objects):
                    kept.restore()
                for memory in self._memory.values():
                    # memory of the host may be mapped read-only, and is then the same
                    if memory.read().is_cuda:
                        memory.write(memory.then)
                    else:
                        memory.restore()
                for _, array in self._arrays:
                    array.restore()
            # an older setting sets newer ones, so those are looked at again
            for setting in self._globals * 2:
                setting.restore()

    def changed_names(self) -> dict[str, Any]:
        """Return the names that are bound to something else now."""
        now, then = self._names.read(), self._names.then
        return {k: v for k, v in now.items() if then.get(k, MISSING) is not v}

    def changed(self) -> dict[str, torch.Tensor | Array]:
        """Return tensors and arrays that hold something else than then."""
        results: dict[str, torch.Tensor | Array] = {}
        with torch.no_grad():
            changed = {at for at, memory in self._memory.items() if memory.differs()}
            for saved in self._tensors:
                results |= saved.changed(changed)
        return results | {
            kept.path: array for array, kept in self._arrays if kept.differs()
        }

    def differences(self) -> list[str]:
        """Name what is not as it was; none after `restore`."""
        names = self._names.then.keys() - self._names.read().keys()
        return [
            *(*self.changed_names(), *names),
            *(kept.path for kept in self._objects if kept.differs()),
            *(kept.path for kept in self._memory.values() if kept.differs()),
            *(kept.path for _, kept in self._arrays if kept.differs()),
            *(kept.path for kept in self._globals if kept.differs()),
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
