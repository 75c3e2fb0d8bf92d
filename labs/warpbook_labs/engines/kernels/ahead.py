"""What the CPU does while the GPU starts, and while the compiler works.

Cases are drawn and answered some ahead of the one that runs. All that is needed of
timed calls is there before the first one, so the CPU rests while they are timed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from warpbook_labs.cases.preparation import Prepared
from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.engines.kernels.inputs import TimedInputs
from warpbook_labs.gpu.jobs import Request
from warpbook_labs.lab.languages.table import rule_of
from warpbook_labs.lab.loader import load

#: cases at a time, each of which may hold some ten MiB
_AHEAD = 4


class Ahead:
    """A lab with a submission's cases and, if it is timed, with inputs for that."""

    def __init__(self, request: Request) -> None:
        """Begin with what is asked; nothing is waited for.

        Raises:
            BadLab: it can't be used.
            BadRule: the launch rule can't be read.
        """
        self.loaded = load(Path(request.folder))
        self.rule = rule_of(self.loaded.lab, request.source)
        # they stay to the end: a process with a lab's own Python ends with its thread
        self._threads = ThreadPoolExecutor(2, "warpbook-ahead")
        self._inputs: Future[TimedInputs] | None = None
        speed = self.loaded.lab.speed
        if request.is_timed and speed is not None:
            self._inputs = self._threads.submit(TimedInputs, self.loaded, speed)
        self._cases = iter(request.cases)
        self._begun = deque(map(self._begin, islice(self._cases, _AHEAD)))

    def cases(self) -> Iterator[tuple[DrawnCase, Callable[[], Prepared]]]:
        """Give each case once, with what waits until it is made ready.

        That raises `BadLab` where the lab's own Python fails, and `BadRule` where the
        launch rule can't be followed.
        """
        while self._begun:
            case, ready = self._begun.popleft()
            yield case, ready.result
            self._begun += map(self._begin, islice(self._cases, 1))

    def _begin(self, case: DrawnCase) -> tuple[DrawnCase, Future[Prepared]]:
        return case, self._threads.submit(self._prepared, case)

    def _prepared(self, case: DrawnCase) -> Prepared:
        prepared = Prepared(self.loaded, self.rule, case)
        prepared.answer()
        return prepared

    def inputs(self) -> TimedInputs:
        """Wait for the inputs of timed calls.

        Raises:
            BadLab: the lab's own Python fails.
        """
        assert self._inputs is not None
        return self._inputs.result()
