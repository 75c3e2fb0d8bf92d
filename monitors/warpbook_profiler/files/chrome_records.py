"""What torch.profiler's Chrome traces hold, as far as it is of use."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field

from warpbook_profiler.events.columns import KINETO_CATEGORIES, NONE, Category
from warpbook_profiler.model.limits import LIMITS_KEY
from warpbook_profiler.model.stalls import STALLS_KEY
from warpbook_profiler.model.use import COLLECTIONS_KEY, KEY, Collections, CpuUse

Int = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
#: of what the file does not tell
NOTHING = msgspec.Raw(b"")

#: before torch 1.13 the categories were words of another kind
_CATEGORIES = KINETO_CATEGORIES | {
    "Kernel": Category.KERNEL,
    "Memcpy": Category.COPY,
    "Memset": Category.MEMSET,
    "Runtime": Category.API,
    "Operator": Category.OPERATOR,
    "cuda_sync": Category.SYNC,
    # what it is, its process and thread tell
    "": Category.OTHER,
}
#: of accelerators that are none of NVIDIA's or AMD's, and what their events are
_OF_A_DEVICE_NAME = re.compile(
    r"(?!cuda|hip|cpu)(\w+?)_(runtime|driver|op|ccp_events|insight)$"
)
_LONGEST_DEVICE = 40
_DEVICES = {
    "xpu": "Intel's XPU",
    "mtia": "Meta's MTIA",
    "hpu": "Intel's Gaudi",
    "privateuse1": "a device of PyTorch's PrivateUse1 (such as Ascend's NPU)",
}
#: CUPTI's range profiler: a kernel's counters
RANGE = "cuda_profiler_range"
_OF_A_DEVICE = {
    "runtime": Category.API,
    "driver": Category.API,
    "op": Category.API,
    "ccp_events": Category.KERNEL,
}


def category_of(cat: str) -> Category | None:
    """Return what events of a file's category are, None if they are of no use."""
    device = _OF_A_DEVICE_NAME.match(cat)
    return _OF_A_DEVICE.get(device[2]) if device else _CATEGORIES.get(cat)


def device_of(cat: str) -> str:
    """Return whose device events are of, "" where it is NVIDIA's or AMD's."""
    device = _OF_A_DEVICE_NAME.match(cat)
    return _DEVICES.get(device[1], device[1][:_LONGEST_DEVICE]) if device else ""


# fields are in the file's order, in which the decoder finds them at once


class Args(Struct, gc=False):
    """What is known of an event beside its time; of texts, only where they are."""

    external: Int = field(name="External id", default=NONE)
    sequence: Int = field(name="Sequence number", default=NONE)
    scalars: msgspec.Raw = field(name="Concrete Inputs", default=NOTHING)
    dtypes: msgspec.Raw = field(name="Input type", default=NOTHING)
    dims: msgspec.Raw = field(name="Input Dims", default=NOTHING)
    device: Int = NONE
    stream: Int = NONE
    correlation: Int = NONE
    bytes: Int = NONE
    registers: msgspec.Raw = field(name="registers per thread", default=NOTHING)
    shared: msgspec.Raw = field(name="shared memory", default=NOTHING)
    grid: msgspec.Raw = NOTHING
    block: msgspec.Raw = NOTHING
    #: before torch 1.13
    older_external: Int = field(name="external id", default=NONE)
    #: XLA's
    correlation_id: Int = NONE
    #: streams, as Intel and AMD name them
    sycl_queue: Int = field(name="sycl queue", default=NONE)
    hsa_queue: Int = NONE
    #: of a record that names a process or a thread
    name: msgspec.Raw = NOTHING
    #: of a collective: what it is, each rank's numbers and their type, and the ranks
    collective: msgspec.Raw = field(name="Collective name", default=NOTHING)
    sent: Int = field(name="In msg nelems", default=NONE)
    received: Int = field(name="Out msg nelems", default=NONE)
    ranks: Int = field(name="Group size", default=NONE)
    dtype: msgspec.Raw = NOTHING


class Bare(Struct, gc=False):
    """An event without what its arguments tell; times are in µs."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: Int | str = NONE
    tid: Int | str = 0
    ts: float = 0.0
    dur: float = 0.0
    #: of an arrow from one event to another
    id: Int | str = NONE


class Event(Bare, gc=False):
    """One record."""

    args: Args | None = None


class Gpu(Struct):
    """A device as Kineto describes it."""

    id: Annotated[int, Meta(ge=0, le=1023)] | None = None
    name: str = ""
    major: int | None = field(name="computeMajor", default=None)
    minor: int | None = field(name="computeMinor", default=None)
    sm_count: int | None = field(name="numSms", default=None)
    threads: int | None = field(name="maxThreadsPerMultiprocessor", default=None)
    registers: int | None = field(name="regsPerMultiprocessor", default=None)
    shared: int | None = field(name="sharedMemPerMultiprocessor", default=None)
    warp_size: int | None = field(name="warpSize", default=None)
    memory: int | None = field(name="totalGlobalMem", default=None)


class Distributed(Struct):
    """Which part of a job wrote the trace."""

    rank: int | None = None


class Head(Struct):
    """What stands beside all events in a part of the file."""

    #: up to the year 2096, so that times in ns fit 64 bits
    base_ns: Annotated[int, Meta(ge=0, le=4 * 10**18)] = field(
        name="baseTimeNanoseconds", default=0
    )
    gpus: tuple[Gpu, ...] = field(name="deviceProperties", default=())
    distributed: Distributed | None = field(name="distributedInfo", default=None)
    #: torch writes its own only where a program adds it by `add_metadata_json`
    torch: int | float | str | None = field(name="torch_version", default=None)
    pytorch: int | float | str | None = field(name="pytorch_version", default=None)
    cuda: int | float | str | None = field(name="cuda_runtime_version", default=None)
    hip: int | float | str | None = field(name="hip_runtime_version", default=None)
    #: warpbook's own
    cpu: CpuUse | None = field(name=KEY, default=None)
    limits: msgspec.Raw = field(name=LIMITS_KEY, default=NOTHING)
    collections: Collections = field(name=COLLECTIONS_KEY, default=())
    stalls: msgspec.Raw = field(name=STALLS_KEY, default=NOTHING)

    @property
    def versions(self) -> dict[str, str]:
        """Give the versions that are told."""
        known = {"torch": self.torch or self.pytorch, "CUDA": self.cuda}
        known["HIP"] = self.hip
        return {name: str(version)[:100] for name, version in known.items() if version}


class Piece(Head):
    """Some events, and what stands beside them."""

    events: list[Event] | None = field(name="traceEvents", default=None)


class OddPiece(Piece):
    """A piece of which some fields made no sense."""

    #: how many; whatever the file says of it itself is not read
    odd_fields: int = 0
