"""A call that may hang for ever, made on a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Attempt(Generic[T]):
    """Starts the call at once; whoever wants the outcome waits only so long."""

    def __init__(self, call: Callable[[], T], name: str) -> None:
        """Start the thread; it does not keep the process alive."""
        self._call = call
        self._outcome: tuple[T] | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the call has not come back."""
        return self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Wait for the call to come back, no longer than this."""
        self._thread.join(seconds)

    def outcome(self, deadline_s: float) -> T:
        """Give what the call gave, or raise what it raised.

        Args:
            deadline_s: of `time.monotonic()`.

        Raises:
            TimeoutError: the call has not come back by then.
        """
        self._thread.join(max(deadline_s - time.monotonic(), 0))
        if self._error is not None:
            raise self._error
        if self._outcome is None:
            raise TimeoutError
        return self._outcome[0]

    def _run(self) -> None:
        try:
            self._outcome = (self._call(),)
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            self._error = error
