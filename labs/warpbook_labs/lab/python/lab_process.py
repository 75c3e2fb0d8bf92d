"""A foreign lab's own Python, in a jailed process that is kept for the next call."""

from __future__ import annotations

import threading
from typing import Any

from warpbook_labs.sandbox.kept import KeptProcess, KeptProcessError
from warpbook_labs.sandbox.limits import Limits
from warpbook_labs.sandbox.values import UnfitValue, decode, encode

#: of all calls together
LIMITS = Limits(
    processor_s=600, asleep_s=120.0, memory_bytes=8 << 30, output_bytes=2 << 30
)


class LabPythonError(Exception):
    """The lab's own Python could not be run, or gave back what is no plain data."""


class LabProcess:
    """One source, and the process that runs it."""

    def __init__(self, file_name: str, source: str, limits: Limits = LIMITS) -> None:
        """Keep the source; nothing is started before the first call."""
        first = encode([file_name, source])
        self._process = KeptProcess(
            "warpbook_labs.lab.python.lab_python", first, limits
        )
        self._lock = threading.Lock()

    def call(self, function: str, *arguments: Any) -> Any:
        """Call one of its functions.

        Args:
            arguments: plain data, arrays of numbers, generators of random numbers.

        Raises:
            Exception: of the type's name and with the words of what the function
                raised.
            LabPythonError: it took too long, ended, or gave back no plain data.
        """
        request = encode([function, list(arguments)])
        with self._lock:
            try:
                content = self._process.exchange(request)
            except KeptProcessError as problem:
                raise LabPythonError(str(problem)) from None
        try:
            status, *results = decode(content)
        except (UnfitValue, ValueError, TypeError):
            raise LabPythonError("It returned malformed data.") from None
        if status == "done" and len(results) == 1:
            return results[0]
        kind, words = [*map(str, results), "", ""][:2]
        name = kind if kind.isidentifier() else "Exception"
        raise type(name[:100], (Exception,), {})(words)
