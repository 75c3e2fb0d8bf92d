"""What can go wrong between a running cell and its figures.

MonitorError
└── TraceError
    ├── ProfilerBusy     another profiler runs in this process
    ├── CaptureFailed    the profiler gave nothing that can be believed
    └── TraceFileError   a trace file can't be read
        ├── NotATrace      another kind of file, or no events of torch.profiler
        ├── TraceDamaged   begins like a trace and is cut off or corrupt
        └── TraceTooLarge  more bytes, events or names than are read
"""

from __future__ import annotations

from warpbook_monitors.errors import MonitorError


class TraceError(MonitorError):
    """Anything this package raises on purpose."""


class ProfilerBusy(TraceError):
    """Another profiler is at work; two cannot share the GPU's trace."""


class CaptureFailed(TraceError):
    """The profiler started or stopped wrongly, so there are no events to show."""


class TraceFileError(TraceError):
    """A trace file is damaged, too large, or no trace."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        #: what is wrong, without the path
        self.problem = message


class NotATrace(TraceFileError):
    """Another kind of file, or a trace without events of torch.profiler."""


class TraceDamaged(TraceFileError):
    """The file begins like a trace and is cut off or corrupt."""


class TraceTooLarge(TraceFileError):
    """The file has more bytes, events or names than are read."""
