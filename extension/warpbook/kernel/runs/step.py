"""`warpbook.step()` and torch's optimizers: who tells a live profile of its steps.

Without a live profile `step()` looks at one name and returns.
"""

from __future__ import annotations

import importlib
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Literal

from warpbook_profiler.model.errors import TraceError

#: an optimizer that has not stepped while another did so often is no longer in use
_FORGOTTEN_AFTER = 100

StepsBy = Literal["warpbook.step()", "optimizer"]


class LiveBusy(TraceError):
    """Another live profile runs; a step can be told to one."""


_listening: Steps | None = None


def step() -> None:
    """Tell a live profile that a step of the loop has ended; else do nothing."""
    if _listening is not None:
        _listening.called()


class Steps:
    """Listens for the steps of the thread that made it.

    `warpbook.step()` goes before the optimizer. Of several optimizers the one that
    stepped first counts, so that a step of a GAN is one step.
    """

    def __init__(self, ended: Callable[[], None]) -> None:
        """Take who is told; nothing is listened for yet."""
        self.by: StepsBy | None = None
        #: on this thread so far
        self.count = 0
        #: told by other threads, which cannot be profiled; about
        self.elsewhere = 0
        self._ended = ended
        self._thread = threading.get_ident()
        self._optimizer: Callable[[], Any] = lambda: None
        self._by_others = 0
        self._hook: Any = None

    def start(self) -> None:
        """Listen; torch is imported if it was not.

        Raises:
            LiveBusy: there is a listener.
        """
        global _listening
        if _listening is not None:
            raise LiveBusy(
                "A live profile is going on around this code, and a step can be told "
                "to one only."
            )
        _listening = self
        optimizers = importlib.import_module("torch.optim.optimizer")
        self._hook = optimizers.register_optimizer_step_post_hook(self._stepped)

    def stop(self) -> None:
        """Listen no more; again changes nothing."""
        global _listening
        if _listening is self:
            _listening = None
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def called(self) -> None:
        if threading.get_ident() != self._thread:
            self.elsewhere += 1
            return
        if self.by != "warpbook.step()":
            # what the optimizer has told before were the same steps
            self.by = "warpbook.step()"
            self.count = 0
        self.count += 1
        self._ended()

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if _listening is not self or self.by == "warpbook.step()":
            return
        if threading.get_ident() != self._thread:
            self.elsewhere += 1
            return
        counted = self._optimizer()
        if counted is not optimizer:
            self._by_others += 1
            if counted is not None and self._by_others < _FORGOTTEN_AFTER:
                return
            self._optimizer = weakref.ref(optimizer)
        self._by_others = 0
        self.by = "optimizer"
        self.count += 1
        self._ended()

    # torch.compile must not trace it into a compiled optimizer
    _stepped._torchdynamo_disable = True  # type: ignore[attr-defined]


def _forget() -> None:
    """In a forked process, such as a loader's worker, nothing is profiled."""
    global _listening
    _listening = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
