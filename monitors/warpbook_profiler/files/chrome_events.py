"""What is kept of a trace file's events: columns that grow piece by piece."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from warpbook_monitors.budget import CHROME
from warpbook_profiler.events.columns import (
    NONE,
    ON_GPU,
    Bools,
    Category,
    Columns,
    Int32s,
    Int64s,
    KernelShape,
    Operands,
    lists_of,
    make_columns,
)
from warpbook_profiler.files.chrome_processes import merged, owners
from warpbook_profiler.files.chrome_records import (
    CATEGORIES,
    NOTHING,
    Args,
    Event,
    Gpu,
    OddPiece,
    Piece,
)
from warpbook_profiler.files.chrome_tables import Places, Table, Threads, in_order
from warpbook_profiler.files.chrome_times import far_away, make_sense, nanoseconds
from warpbook_profiler.model.errors import TraceTooLarge
from warpbook_profiler.model.use import CpuUse

#: More events are refused: they would take some two GB.
MAX_EVENTS = CHROME.items
#: and so are more different names, launches and operands, in letters.
MAX_TEXT = CHROME.text_bytes
_OPERATORS = {name for name, at in CATEGORIES.items() if at == Category.OPERATOR}
_CALLS = CATEGORIES.keys() - _OPERATORS
_ANNOTATION = "user_annotation"
#: whose GPU is where others have a process
_GPU_ANNOTATION = "gpu_user_annotation"
#: of accelerators that are none of NVIDIA's or AMD's
_OF_A_DEVICE = re.compile(r"(?!cuda|hip)(\w+?)_(runtime|driver|ccp_events|insight)$")
_LONGEST_DEVICE, _LONGEST_PROCESS = 40, 100
_DEVICES = {
    "xpu": "Intel's XPU",
    "mtia": "Meta's MTIA",
    "hpu": "Intel's Gaudi",
    "privateuse1": "a device of PyTorch's PrivateUse1 (such as Ascend's NPU)",
}
_Count = Annotated[int, Meta(ge=0, le=2**40)]
_Triple = tuple[_Count, _Count, _Count]
_NO_ARGS = Args()
#: between parts of a text; JSON never holds this byte as it is
_JOIN = b"\0".join
_COMMON = {
    "name": "i",
    "start_us": "d",
    "duration_us": "d",
    "thread": "q",
    "process": "i",
    "external": "q",
    # of an operator what it was called with, of a kernel how it was launched
    "text": "i",
}
_OF_OPERATORS = {"annotates": "b", "sequence": "q"}
_OF_CALLS = {
    "category": "b",
    "device": "q",
    "stream": "q",
    "correlation": "q",
    "size_bytes": "q",
}


@dataclass
class Gathered:
    """What the pieces so far hold."""

    base_ns: int = 0
    gpus: tuple[Gpu, ...] = ()
    rank: int | None = None
    #: of torch, CUDA and HIP, as far as the file tells
    versions: dict[str, str] = field(default_factory=dict)
    #: what the process took of the CPU, where warpbook saved the trace
    cpu: CpuUse | None = None
    #: whose events there are of a device that is not read
    other_device: str = ""
    #: when the profiler says that it recorded: start and duration in µs, one or none
    recorded: list[tuple[float, float]] = field(default_factory=list)
    #: events whose times make no sense
    senseless: int = 0
    #: other fields that make none, each left out by itself
    odd_fields: int = 0
    operators: Table = field(default_factory=lambda: Table(**_COMMON, **_OF_OPERATORS))
    #: CUDA calls and what they put on the GPU
    calls: Table = field(default_factory=lambda: Table(**_COMMON, **_OF_CALLS))
    names: Places = field(default_factory=Places)
    shapes: Places = field(default_factory=Places)
    operands: Places = field(default_factory=Places)
    threads: Threads = field(default_factory=Threads)
    #: by what the file calls them; of work on a GPU most files name the GPU instead
    processes: Places = field(default_factory=Places)

    def join(self, later: Gathered) -> None:
        """Take what a later part of the same file holds."""
        self.base_ns = later.base_ns or self.base_ns
        self.gpus = later.gpus or self.gpus
        self.rank = self.rank if later.rank is None else later.rank
        self.cpu = later.cpu or self.cpu
        self.other_device = self.other_device or later.other_device
        self._extend(later.recorded)
        self.odd_fields += later.odd_fields
        self.versions |= later.versions
        name = in_order(later.names, self.names)
        process = in_order(later.processes, self.processes)
        operand = in_order(later.operands, self.operands)
        shape = in_order(later.shapes, self.shapes)
        self.operators.join(later.operators, name=name, process=process, text=operand)
        self.calls.join(later.calls, name=name, process=process, text=shape)

    def _extend(self, recorded: list[tuple[float, float]]) -> None:
        """Let what was recorded reach from the first begin to the last end."""
        spans = self.recorded + recorded
        if len(spans) > 1:
            begin = min(spans)[0]
            spans = [(begin, max(map(sum, spans)) - begin)]
        self.recorded = spans

    def check(self, path: str) -> None:
        """Refuse what would take too much memory."""
        if len(self.operators) + len(self.calls) > MAX_EVENTS:
            raise TraceTooLarge(path, f"more than {MAX_EVENTS:,} events.")
        if self.text_size > MAX_TEXT:
            raise TraceTooLarge(path, f"more than {MAX_TEXT:,} letters of names.")

    @property
    def text_size(self) -> int:
        """Count the letters of all different names, launches, operands, threads."""
        texts = (
            *(self.names, self.shapes, self.operands),
            *(self.threads, self.processes),
        )
        return sum(text.size for text in texts)

    def add(self, piece: Piece) -> None:
        """Take what is of use in a piece, and let go of the rest."""
        self.base_ns = piece.base_ns or self.base_ns
        self.gpus = piece.gpus or self.gpus
        if piece.distributed is not None:
            self.rank = piece.distributed.rank
        if isinstance(piece, OddPiece):
            self.odd_fields += piece.odd_fields
        self.versions |= piece.versions
        self.cpu = piece.cpu or self.cpu
        records = piece.events or []
        for device in filter(
            None, map(_OF_A_DEVICE.match, sorted({record.cat for record in records}))
        ):
            self.other_device = _DEVICES.get(device[1], device[1][:_LONGEST_DEVICE])
        recorded = [
            (record.ts, record.dur)
            for record in records
            if record.cat == "Trace"
            and record.dur
            and make_sense(record.ts, record.dur)
        ]
        self._extend(recorded)
        self._add_operators(
            [
                record
                for record in records
                if record.cat in _OPERATORS and record.ph == "X"
            ]
        )
        self._add_calls(
            [record for record in records if record.cat in _CALLS and record.ph == "X"]
        )

    def _add_operators(self, events: list[Event]) -> None:
        args, places = self._add_common(self.operators, events), self.operands
        self.operators.add(
            annotates=[event.cat == _ANNOTATION for event in events],
            sequence=[a.sequence for a in args],
            text=[
                NONE
                if a.dims is NOTHING
                else places[_JOIN((a.dims, a.dtypes, a.scalars))]
                for a in args
            ],
        )

    def _add_calls(self, events: list[Event]) -> None:
        args, places = self._add_common(self.calls, events), self.shapes
        self.calls.add(
            category=[CATEGORIES[event.cat] for event in events],
            device=[
                event.pid
                if event.cat == _GPU_ANNOTATION and isinstance(event.pid, int)
                else a.device
                for event, a in zip(events, args, strict=True)
            ],
            stream=[a.stream for a in args],
            correlation=[a.correlation for a in args],
            size_bytes=[a.bytes for a in args],
            text=[
                NONE
                if a.grid is NOTHING
                else places[_JOIN((a.grid, a.block, a.registers, a.shared))]
                for a in args
            ],
        )

    def _add_common(self, to: Table, events: list[Event]) -> list[Args]:
        names, threads, processes = self.names, self.threads, self.processes
        args = [event.args or _NO_ARGS for event in events]
        external = [a.external for a in args]
        if to is self.calls:
            # their links were written otherwise before torch 1.13
            external = [
                a.older_external if link == NONE else link
                for a, link in zip(args, external, strict=True)
            ]
        to.add(
            name=[names[event.name] for event in events],
            start_us=[event.ts for event in events],
            duration_us=[event.dur for event in events],
            thread=[threads[event.tid] for event in events],
            process=[processes[event.pid] for event in events],
            external=external,
        )
        return args

    @property
    def recorded_ns(self) -> tuple[int, int] | None:
        """Tell from when to when the profiler recorded, where the file tells it."""
        if not self.recorded:
            return None
        first_us, length_us = self.recorded[0]
        begin_ns = self.base_ns + int(nanoseconds(np.array(first_us)))
        return begin_ns, begin_ns + round(length_us * 1000)

    def processes_in(self) -> tuple[list[str], Int64s]:
        """Tell a merged file's processes apart.

        Returns:
            the names of its processes, none where it holds one, and of each event the
            position of its process among them, or NONE.
        """
        names = [str(name)[:_LONGEST_PROCESS] for name in self.processes]
        first: dict[str, int] = {}
        # some tools write a number as a text, and not always
        same = np.array(
            [first.setdefault(name, at) for at, name in enumerate(names)], np.int64
        )
        category, process = self._both("category"), same[self._both("process")]
        hosts = merged(category, process)
        if not hosts:
            return [], np.zeros(0, np.int64)
        owner = owners(category, process, self._both("correlation"), names, hosts)
        place = np.full(len(names) + 1, NONE, np.int64)
        place[hosts] = np.arange(len(hosts))
        return [names[host] for host in hosts], place[owner]

    def _both(self, name: str) -> Any:
        """Give a column of operators and calls; NONE where operators have none."""
        operators, calls = self.operators.whole(), self.calls.whole()
        if name not in operators:
            value = Category.OPERATOR if name == "category" else NONE
            # there is no less than none
            calls[name] = np.maximum(calls[name], NONE)
            operators[name] = np.full(len(self.operators), value, calls[name].dtype)
        return np.concatenate([operators[name], calls[name]])

    def columns(self, chosen: Bools | None = None) -> Columns:
        """Put operators and calls together.

        Args:
            chosen: those of one process, in a merged file.
        """
        both, operators, calls = self._both, self.operators.whole(), self.calls.whole()
        start_us, duration_us = both("start_us"), both("duration_us")
        sensible = make_sense(start_us, duration_us)
        category = both("category")
        on_host = ~np.isin(category, (*ON_GPU, Category.GPU_ANNOTATION))
        sensible[sensible] = ~far_away(
            start_us[sensible], duration_us[sensible], on_host[sensible], self.recorded
        )
        self.senseless = len(sensible) - int(np.count_nonzero(sensible))
        kept = sensible if self.senseless else slice(None)
        if chosen is not None:
            kept = sensible & chosen
        stream = both("stream")
        is_kernel = calls["category"] == Category.KERNEL
        # where kernels are, only operators that put one on the GPU are ever modelled
        is_linked = np.isin(operators["external"], calls["external"][is_kernel])
        if not is_kernel.any():
            is_linked[:] = True
        no_number = np.full(len(self.calls), NONE, np.int64)
        no_shape = np.full(len(self.operators), NONE, np.int32)
        no_operand = np.full(len(self.calls), NONE, np.int32)
        shape = np.where(is_kernel, calls["text"], NONE)
        operand = np.where(is_linked, operators["text"], NONE)
        return make_columns(
            names=(tuple(self.names), both("name")[kept]),
            categories=category[kept],
            start_ns=self.base_ns + nanoseconds(start_us[kept]),
            duration_ns=nanoseconds(duration_us[kept]),
            device=both("device")[kept],
            track=np.where(stream == NONE, both("thread"), stream)[kept],
            correlation=both("correlation")[kept],
            size_bytes=both("size_bytes")[kept],
            external=np.maximum(both("external"), NONE)[kept],
            annotates=np.concatenate(
                [operators["annotates"] != 0, np.zeros(len(self.calls), np.bool_)]
            )[kept],
            sequence=np.concatenate(
                [np.maximum(operators["sequence"], NONE), no_number]
            )[kept],
            shapes=_parsed(
                self.shapes, np.concatenate([no_shape, shape])[kept], _shape
            ),
            operands=_parsed(
                self.operands, np.concatenate([operand, no_operand])[kept], _operands
            ),
        )


_T = TypeVar("_T")


def _parsed(
    texts: Iterable[bytes], position: Int32s, parse: Callable[[list[bytes]], _T]
) -> tuple[tuple[_T, ...], Int32s]:
    """Parse each text that is in use; what can't be parsed is not known."""
    used = np.bincount(position[position != NONE])
    place = np.full(len(used) + 1, NONE, np.int32)  # NONE is the last
    parsed: list[_T] = []
    wanted = [
        (text, at) for at, text in enumerate(texts) if at < len(used) and used[at]
    ]
    # sorted, so that the order of the file's events decides nothing
    for text, at in sorted(wanted):
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
            parsed.append(parse(text.split(b"\0")))
            place[at] = len(parsed) - 1
    return tuple(parsed), place[position]


def _shape(text: list[bytes]) -> KernelShape:
    grid, block, registers, shared = text
    return KernelShape(
        msgspec.json.decode(grid, type=_Triple),
        msgspec.json.decode(block, type=_Triple),
        msgspec.json.decode(registers or b"0", type=_Count),
        msgspec.json.decode(shared or b"0", type=_Count),
    )


def _operands(text: list[bytes]) -> Operands:
    dims, dtypes, scalars = text
    # a list of tensors (as of aten::cat) nests one level deeper
    operands = msgspec.json.decode(
        dims, type=tuple[tuple[_Count | tuple[_Count, ...], ...], ...]
    )
    return Operands(
        tuple(
            tuple(size for size in operand if isinstance(size, int))
            if all(isinstance(size, int) for size in operand)
            else ()
            for operand in operands
        ),
        msgspec.json.decode(dtypes or b"[]", type=tuple[str, ...]),
        msgspec.json.decode(scalars or b"[]", type=tuple[str, ...]),
        lists_of(operands),
    )
