"""The kinds of verdict: one word for one cause, live and of a profiled cell.

Counters tell less than a trace: a live verdict is never `launch-bound` or `sync-bound`,
which to counters are `host-bound`. A trace has no `idle` and no `few-multiprocessors`.
"""

from __future__ import annotations

from typing import Literal

#: of a trace with GPU work
GpuKind = Literal[
    "launch-bound",
    "sync-bound",
    "host-bound",
    "transfer-bound",
    "memory-bound",
    "compute-bound",
    "communication-bound",
    "mixed",
    "unknown",
]
#: of a trace without, beside those above
CpuKind = Literal[
    "input-bound",
    "python-bound",
    "overhead-bound",
    "operator-bound",
    "thread-bound",
    "wait-bound",
]
#: of counters alone, beside those above
LiveKind = Literal["few-multiprocessors", "idle"]
Kind = Literal[GpuKind, CpuKind, LiveKind]
#: what a compute-bound GPU computes with, as far as counters tell
Unit = Literal["tensor cores", "CUDA cores"]

#: what live verdicts said before, as receipts on disk still do
_FORMER: dict[str, tuple[Kind, Unit | None]] = {
    "host_wait": ("host-bound", None),
    "copy_bound": ("transfer-bound", None),
    "memory_bound": ("memory-bound", None),
    "tensor_bound": ("compute-bound", "tensor cores"),
    "cuda_core_bound": ("compute-bound", "CUDA cores"),
    "communication_bound": ("communication-bound", None),
    "few_multiprocessors": ("few-multiprocessors", None),
}
#: a quote within a text is escaped, so these bytes are always a key and its value
_FORMER_JSON = {
    f'"kind":"{former}"'.encode(): (
        f'"kind":"{kind}"' + (f',"unit":"{unit}"' if unit else "")
    ).encode()
    for former, (kind, unit) in _FORMER.items()
}


def present_kind(kind: object) -> object:
    """Give a kind as it is spelled now; anything else as it is."""
    return _FORMER[kind][0] if isinstance(kind, str) and kind in _FORMER else kind


def spellings(kind: str) -> tuple[str, ...]:
    """Give a kind and all that stood for it before."""
    return kind, *(former for former, (now, _) in _FORMER.items() if now == kind)


def with_present_kinds(encoded: bytes) -> bytes:
    """Spell the kinds in a message that was written before as they are now.

    Args:
        encoded: JSON without spaces between its tokens, as msgspec writes it.
    """
    for former, present in _FORMER_JSON.items():
        encoded = encoded.replace(former, present)
    return encoded
