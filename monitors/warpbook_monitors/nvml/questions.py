"""What a device is asked, call by call: which metrics, how often, and why not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from warpbook_monitors.frames import State
from warpbook_monitors.metrics import GPU, MOST
from warpbook_monitors.nvml.gate import FunctionMissing, NotSupported, NvmlError

#: a call that NVML refused is made again after this
RETRY_NS = 10_000_000_000
#: unexplained failures in a row until a metric is said to be unavailable
_PATIENCE = 3

Handle = Any
Values = tuple[float | None, ...]
Way = Callable[[Handle], Values]


class Question:
    """What one call answers: some metrics, their last values and their state."""

    def __init__(
        self,
        names: tuple[str, ...],
        *ways: Way,
        period_ns: int = 0,
        not_supported: str = "",
    ) -> None:
        """Ask the first of `ways` that the device supports, once a `period_ns`."""
        self.names = names
        self.state: State = "ok"
        self.why = ""
        self.due_ns = 0
        self.values: Values = (None,) * len(names)
        self._most = tuple(MOST[GPU[name].unit] for name in names)
        self._ways = list(ways)
        self._period_ns = period_ns
        self._not_supported = not_supported
        # nothing worked yet, so the first failure counts
        self._failures = _PATIENCE

    def ask(self, handle: Handle, now_ns: int) -> bool:
        """Make the call; True if the state changed.

        Raises:
            DeviceLost: the device is gone.
        """
        try:
            values = self._answer(handle)
            self._check(values)
        except NvmlError as error:
            return self._fail(error, now_ns)
        self.values = values
        self._failures = 0
        self.due_ns = now_ns + self._period_ns
        return self._become("ok", "")

    def _answer(self, handle: Handle) -> Values:
        refusals = []
        for way in self._ways:
            try:
                values = way(handle)
            except NotSupported as error:
                refusals.append(error)
                continue
            if refusals:
                self._ways.remove(way)
                self._ways.insert(0, way)
            return values
        # that the driver lacks a way says less than that the GPU refused one
        raise min(refusals, key=lambda error: isinstance(error, FunctionMissing))

    def _check(self, values: Values) -> None:
        for name, value, most in zip(self.names, values, self._most, strict=True):
            if value is None:
                continue
            if not 0 <= value <= most:
                raise NvmlError(
                    f"The driver returned {value:g} for {name}: an impossible value."
                )

    def _fail(self, error: NvmlError, now_ns: int) -> bool:
        self.values = (None,) * len(self.names)
        self._failures += 1
        if error.state == "unavailable" and self._failures < _PATIENCE:
            return False
        self.due_ns = now_ns + RETRY_NS
        why = self._not_supported if type(error) is NotSupported else ""
        return self._become(error.state, why or str(error))

    def _become(self, state: State, why: str) -> bool:
        changed = (state, why) != (self.state, self.why)
        self.state, self.why = state, why
        return changed


class Sheet:
    """The questions put to one device, and the answers side by side."""

    def __init__(self, names: Iterable[str], questions: Iterable[Question]) -> None:
        """Put the answers in the order of `names`, in which each name is asked for."""
        self.names = tuple(names)
        self.values: list[float | None] = [None] * len(self.names)
        self._rows = []
        self._by_name: dict[str, Question] = {}
        for question in questions:
            first = self.names.index(question.names[0])
            self._rows.append((question, slice(first, first + len(question.names))))
            self._by_name.update(dict.fromkeys(question.names, question))

    def ask(self, handle: Handle, now_ns: int) -> bool:
        """Ask what is due; True if something is answered differently from now on.

        Raises:
            DeviceLost: the device is gone.
        """
        changed = False
        for question, part in self._rows:
            if now_ns >= question.due_ns:
                changed |= question.ask(handle, now_ns)
                self.values[part] = question.values
        return changed

    def state(self, name: str) -> tuple[State, str]:
        """Whether a metric is answered, and in words why not."""
        question = self._by_name[name]
        return question.state, question.why

    def value(self, name: str) -> float | None:
        """The last answer for one metric."""
        return self.values[self.names.index(name)]
