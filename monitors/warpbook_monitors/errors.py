"""What can go wrong while monitoring, each with a reason a person can act on.

MonitorError
├── Unavailable      a source or a device can't be read: `reason` says why
├── NoReading        a device has no values now: `state` says what it is instead
│   └── DeviceLost   it is gone
├── RecordingError   a recording can't be read or written: `line` says where
└── RulesError       a file of alert rules can't be used
"""

from __future__ import annotations

from pathlib import Path

from warpbook_monitors.frames import Absence, AbsenceReason, State


class MonitorError(Exception):
    """Anything this package raises on purpose."""


class Unavailable(MonitorError):
    """A source has nothing to read here, for a reason that can be told."""

    def __init__(
        self, what: str, reason: AbsenceReason, message: str, remedy: str = ""
    ) -> None:
        """Keep the absence as the record that is also sent to viewers."""
        super().__init__(f"{what}: {message}" + (f" {remedy}" if remedy else ""))
        self.absence = Absence(what, reason, message, remedy)


class NoReading(MonitorError):
    """A device that was found can't be read now; the message says why."""

    def __init__(self, why: str, state: State = "unavailable") -> None:
        super().__init__(why)
        self.state = state


class DeviceLost(NoReading):
    """A device stopped answering for good (fell off the bus, was reset)."""

    def __init__(self, why: str) -> None:
        super().__init__(why, "lost")


class RecordingError(MonitorError):
    """A recording is unusable from one line on; everything before is intact."""

    def __init__(self, path: str, line: int, message: str) -> None:
        """Name the file and the 1-based line."""
        super().__init__(f"{path}, line {line}: {message}")
        self.path = path
        self.line = line


class RulesError(MonitorError):
    """A file of alert rules is refused as a whole."""

    def __init__(self, path: Path, message: str) -> None:
        """Name the file; the message names the line or the key."""
        super().__init__(f"{path}: {message}")
        self.reason = message
