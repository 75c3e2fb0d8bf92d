"""What an input from outside may take: the one place of these numbers.

A reader counts bytes, items and time as it goes, and stops at its budget. What a parser
does within one call is bounded by limits of its process, which `hold` sets.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Mapping
from typing import NamedTuple, NoReturn, TypeVar

import msgspec

_T = TypeVar("_T")


class Budget(NamedTuple):
    """What one file of a kind may take."""

    #: of all that is read of it, unpacked
    most_bytes: int
    #: of one value, or of what must be held at once
    value_bytes: int
    #: of all texts that are kept
    text_bytes: int
    #: rows, events or launches
    items: int


#: a trace of torch.profiler; its events take some two GB
CHROME = Budget(4_000_000_000, 64_000_000, 500_000_000, 10_000_000)
#: an export of Nsight Systems
NSYS = Budget(8_000_000_000, 1_000_000, 500_000_000, 10_000_000)
#: a table of Nsight Compute: a raw page has some thousand metrics in its first line
NCU = Budget(200_000_000, 1_000_000, 30_000_000, 100_000)
#: of a reader that looks at the clock, for one file
READ_S = 120.0


class ProcessBudget(NamedTuple):
    """What a process that reads such inputs may take."""

    #: of address space: what is mapped and never touched counts, too
    memory_bytes: int
    cpu_s: int

    @property
    def words(self) -> str:
        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        memory_gib = min(self.memory_bytes, _finite(soft)) >> 30
        return (
            f"it takes more than {memory_gib} GiB of memory or {self.cpu_s} s of CPU."
        )


#: to read takes some 3 GB at the most, to judge as much again
TRACES = ProcessBudget(12 << 30, 900)
#: the sources of a class, compared
SOURCES = ProcessBudget(4 << 30, 300)


class ConnectionBudget(NamedTuple):
    """What an HTTP server gives to those who connect."""

    #: at a time; at most half of them without a complete request
    most: int
    header_bytes: int
    #: until a request's headers are there; a connection may be idle as long
    header_s: float
    #: of a body, before it is known who sends it, and after
    body_bytes: int
    body_s: float
    known_body_s: float


#: a class of 300 with pages that stay open
CONNECTIONS = ConnectionBudget(4_096, 32 << 10, 60.0, 64 << 10, 10.0, 60.0)
#: of the agent, a thread each
AGENT_CONNECTIONS = 64
AGENT_SILENT_S = 10.0
#: of an upload to Jupyter's own server
UPLOAD_S = 600.0
#: of descriptors, for what is no connection
_OTHER_DESCRIPTORS = 128
_MOST_DESCRIPTORS = 65_536


class OutOfTime(Exception):
    """A process has used the CPU time that it was given."""


#: what is raised in a process that is held to a budget
EXCEEDED = (MemoryError, OutOfTime)


class NotJson(ValueError):
    """A text is no JSON, is not of the type that was asked for, or is too deep."""


def decode_json(text: bytes | str, decoder: msgspec.json.Decoder[_T]) -> _T:
    """Decode a text of somebody else's.

    Raises:
        NotJson: with what is wrong; it may quote a name of the sender's choice.
    """
    try:
        return decoder.decode(text)
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except ValueError as problem:
        raise NotJson(str(problem)) from None


def bound(bounds: Mapping[int, int]) -> None:
    """Lower limits of this process; none is ever raised.

    Args:
        bounds: by `resource.RLIMIT_...`.
    """
    for which, most in bounds.items():
        soft, hard = resource.getrlimit(which)
        allowed = min(_finite(most), _finite(soft), _finite(hard))
        # a second later the kernel kills without a word, so the first signal must tell
        grace = int(which == resource.RLIMIT_CPU)
        resource.setrlimit(which, (allowed, min(allowed + grace, _finite(hard))))


def raise_descriptors() -> None:
    """Let this process have as many open files as its hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = max(soft, min(_finite(hard), _MOST_DESCRIPTORS))
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def spare_descriptors() -> int:
    """Give how many connections this process can have open beside its files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(_finite(soft) - _OTHER_DESCRIPTORS, 16)


def hold(budget: ProcessBudget, inputs: int = 1) -> None:
    """Hold this process to a budget from now on; beyond it, memory or time errors rise.

    Args:
        budget: of the process.
        inputs: how many it reads, each with as much CPU time.
    """
    used_s = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    signal.signal(signal.SIGXCPU, _out_of_time)
    bound(
        {
            resource.RLIMIT_AS: budget.memory_bytes,
            resource.RLIMIT_CPU: int(used_s) + budget.cpu_s * inputs,
            resource.RLIMIT_CORE: 0,
        }
    )


def _finite(limit: int) -> int:
    # it is -1, which `min` would take
    return 2**63 - 1 if limit == resource.RLIM_INFINITY else limit


def _out_of_time(*_: object) -> NoReturn:
    raise OutOfTime
