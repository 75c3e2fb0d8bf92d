"""What is kept of a trace file's events: columns that grow piece by piece."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from warpbook_monitors.budget import CHROME
from warpbook_profiler.events.columns import (
    NONE,
    ON_GPU,
    Bools,
    Category,
    Columns,
    Int64s,
    make_columns,
)
from warpbook_profiler.files.chrome_links import OTHER_KEYS, USUAL, arrows, linked
from warpbook_profiler.files.chrome_names import placed, plain
from warpbook_profiler.files.chrome_operands import message, operands, parsed, shape
from warpbook_profiler.files.chrome_processes import merged, owners
from warpbook_profiler.files.chrome_records import (
    NOTHING,
    RANGE,
    Args,
    Event,
    Gpu,
    OddPiece,
    Piece,
    category_of,
    device_of,
)
from warpbook_profiler.files.chrome_tables import Places, Table, Threads, in_order
from warpbook_profiler.files.chrome_times import far_away, make_sense, nanoseconds
from warpbook_profiler.model.errors import TraceTooLarge
from warpbook_profiler.model.use import Collections, CpuUse

#: More events are refused: they would take some two GB.
MAX_EVENTS = CHROME.items
#: and so are more different names, launches and operands, in letters.
MAX_TEXT = CHROME.text_bytes
_ANNOTATION = "user_annotation"
#: whose GPU is where others have a process
_GPU_ANNOTATION = "gpu_user_annotation"
_LONGEST_PROCESS = 100
#: no program names more processes and threads
_MOST_LABELS = 10_000
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
    #: and what its GPU had been measured to reach, as JSON
    limits: bytes = b""
    collections: Collections = ()
    stalls: bytes = b""
    #: whose device the events are of, where it is none of NVIDIA's or AMD's
    other_device: str = ""
    #: what links launches and work, if it is not the usual key
    linked_by: str = ""
    #: of columns that the file writes by another key, that key
    spelled: dict[str, str] = field(default_factory=dict)
    #: what the file calls its processes, and with a number their threads
    labels: dict[tuple[int | str, int], str] = field(default_factory=dict)
    #: when the profiler says that it recorded: start and duration in µs, one or none
    recorded: list[tuple[float, float]] = field(default_factory=list)
    #: kernels that were counted in, which leaves no times
    ranges: int = 0
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
        self.base_ns, self.gpus = later.base_ns or self.base_ns, later.gpus or self.gpus
        self.rank = self.rank if later.rank is None else later.rank
        self.cpu, self.limits = later.cpu or self.cpu, later.limits or self.limits
        self.collections = later.collections or self.collections
        self.stalls = later.stalls or self.stalls
        self.other_device = self.other_device or later.other_device
        self.labels |= later.labels
        self.spelled |= later.spelled
        self._extend(later.recorded)
        self.odd_fields += later.odd_fields
        self.ranges += later.ranges
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
        texts = self.names, self.shapes, self.operands, self.threads, self.processes
        if sum(text.size for text in texts) > MAX_TEXT:
            raise TraceTooLarge(path, f"more than {MAX_TEXT:,} letters of names.")

    def add(self, piece: Piece) -> None:
        """Take what is of use in a piece, and let go of the rest."""
        self.base_ns, self.gpus = piece.base_ns or self.base_ns, piece.gpus or self.gpus
        if piece.distributed is not None:
            self.rank = piece.distributed.rank
        if isinstance(piece, OddPiece):
            self.odd_fields += piece.odd_fields
        self.versions |= piece.versions
        self.cpu = piece.cpu or self.cpu
        self.limits = bytes(piece.limits) or self.limits
        self.collections = piece.collections or self.collections
        self.stalls = bytes(piece.stalls) or self.stalls
        records = piece.events or []
        kinds = {cat: category_of(cat) for cat in {record.cat for record in records}}
        for device in filter(None, map(device_of, sorted(kinds))):
            self.other_device = device
        if RANGE in kinds:
            self.ranges += sum(record.cat == RANGE for record in records)
        if "Trace" in kinds:
            recorded = [
                (record.ts, record.dur)
                for record in records
                if record.cat == "Trace"
                and record.dur
                and make_sense(record.ts, record.dur)
            ]
            self._extend(recorded)
        if "" in kinds:
            self._add_labels([record for record in records if record.ph == "M"])
        operators = {cat for cat, at in kinds.items() if at is Category.OPERATOR}
        calls = {cat for cat, at in kinds.items() if at is not None} - operators
        whole = [record for record in records if record.ph == "X"]
        self._add_operators([record for record in whole if record.cat in operators])
        self._add_calls([record for record in whole if record.cat in calls], kinds)

    def _add_labels(self, records: list[Event]) -> None:
        for record in records[: _MOST_LABELS - len(self.labels)]:
            if record.args and record.name in ("process_name", "thread_name"):
                is_thread = record.name == "thread_name"
                at = self.threads[record.tid] if is_thread else NONE
                label = bytes(record.args.name)[1:_LONGEST_PROCESS].decode("latin-1")
                self.labels[record.pid, at] = label.strip('"')

    def _add_operators(self, events: list[Event]) -> None:
        args, places = self._add_common(self.operators, events), self.operands
        self.operators.add(
            annotates=[event.cat == _ANNOTATION for event in events],
            sequence=[a.sequence for a in args],
            text=[
                places[_JOIN((a.dims, a.dtypes, a.scalars, *message(a)))]
                if a.collective is not NOTHING
                else NONE
                if a.dims is NOTHING
                else places[_JOIN((a.dims, a.dtypes, a.scalars))]
                for a in args
            ],
        )

    def _add_calls(
        self, events: list[Event], kinds: dict[str, Category | None]
    ) -> None:
        args, places = self._add_common(self.calls, events), self.shapes
        devices = [a.device for a in args]
        if _GPU_ANNOTATION in kinds:
            devices = [
                event.pid
                if event.cat == _GPU_ANNOTATION and isinstance(event.pid, int)
                else device
                for event, device in zip(events, devices, strict=True)
            ]
        self.calls.add(
            category=[kinds[event.cat] for event in events],
            device=devices,
            stream=[
                a.stream
                if a.stream != NONE
                else a.sycl_queue
                if a.sycl_queue != NONE
                else a.hsa_queue
                for a in args
            ],
            correlation=self._either(
                "correlation", [a.correlation for a in args], args
            ),
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
        to.add(
            name=[names[event.name] for event in events],
            start_us=[event.ts for event in events],
            duration_us=[event.dur for event in events],
            thread=[threads[event.tid] for event in events],
            process=[processes[event.pid] for event in events],
            external=self._either("external", [a.external for a in args], args),
        )
        return args

    def _either(self, column: str, values: list[int], args: list[Args]) -> list[int]:
        """Fill in what lacks the usual key by the other one."""
        if NONE not in values:
            return values
        key, name = OTHER_KEYS[column]
        others = [getattr(a, key) for a in args]
        if max(others) > NONE:
            self.spelled[column] = name
            return list(map(max, values, others))
        return values

    @cached_property
    def _calls(self) -> dict[str, Any]:
        """Give all calls, once all are there: some are known by their process alone."""
        places = {at: str(pid) for pid, at in self.processes.items()}
        labels = {(at, NONE): name for at, name in places.items()} | {
            (self.processes[pid], at): label
            for (pid, at), label in self.labels.items()
            if pid in self.processes
        }
        calls = self.calls.whole()
        category, device = placed(calls, tuple(self.names), labels)
        return calls | {"category": category, "device": device}

    @property
    def is_torch(self) -> bool:
        """Tell whether all work on a GPU has a category, as torch's profiler writes."""
        unnamed = self.calls.whole()["category"] == Category.OTHER
        return not np.isin(self._calls["category"][unnamed], ON_GPU).any()

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
        operators, of_calls = self.operators.whole(), self._calls[name]
        if name not in operators:
            value = Category.OPERATOR if name == "category" else NONE
            # there is no less than none
            of_calls = np.maximum(of_calls, NONE)
            operators[name] = np.full(len(self.operators), value, of_calls.dtype)
        return np.concatenate([operators[name], of_calls])

    def columns(self, pieces: Iterable[Piece], chosen: Bools | None = None) -> Columns:
        """Put operators and calls together.

        Args:
            pieces: of the file once more; read where no number links its events.
            chosen: those of one process, in a merged file.
        """
        both, operators, calls = self._both, self.operators.whole(), self._calls
        start_us, duration_us = both("start_us"), both("duration_us")
        sensible = make_sense(start_us, duration_us)
        category = both("category")
        on_host = ~np.isin(category, (*ON_GPU, Category.GPU_ANNOTATION))
        sensible[sensible] = ~far_away(
            start_us[sensible], duration_us[sensible], on_host[sensible], self.recorded
        )
        self.senseless = len(sensible) - int(np.count_nonzero(sensible))
        sensible &= category != Category.OTHER
        if chosen is not None:
            sensible &= chosen
        kept: Any = slice(None) if sensible.all() else sensible
        of_calls = sensible[len(self.operators) :] if kept is sensible else kept
        names = tuple(map(plain, self.names))
        number, key = linked(
            {name: column[of_calls] for name, column in calls.items()},
            names,
            # no file has more than two ends for each call and its work
            islice(arrows(pieces, self.processes, self.threads), 2 * len(self.calls)),
        )
        self.linked_by = self.spelled.get(key.column, "" if key is USUAL else key.name)
        category = category[kept]
        no_numbers = np.full(len(category) - len(number), NONE, np.int64)
        stream = both("stream")
        is_kernel = calls["category"] == Category.KERNEL
        # where kernels are, only operators that put work on the GPU are ever modelled
        is_work = is_kernel | (calls["category"] == Category.COPY)
        is_linked = np.isin(operators["external"], calls["external"][is_work])
        is_linked &= operators["external"] > NONE
        if not is_linked.any():
            is_linked[:] = True
        no_number = np.full(len(self.calls), NONE, np.int64)
        no_shape = np.full(len(self.operators), NONE, np.int32)
        no_operand = np.full(len(self.calls), NONE, np.int32)
        shapes = np.where(is_kernel, calls["text"], NONE)
        texts = np.where(is_linked, operators["text"], NONE)
        return make_columns(
            names=(names, both("name")[kept]),
            categories=category,
            start_ns=self.base_ns + nanoseconds(start_us[kept]),
            duration_ns=nanoseconds(duration_us[kept]),
            device=both("device")[kept],
            track=np.where(stream == NONE, both("thread"), stream)[kept],
            correlation=np.concatenate([no_numbers, np.maximum(number, NONE)]),
            size_bytes=both("size_bytes")[kept],
            external=np.maximum(both("external"), NONE)[kept],
            annotates=np.concatenate(
                [operators["annotates"] != 0, np.zeros(len(self.calls), np.bool_)]
            )[kept],
            sequence=np.concatenate(
                [np.maximum(operators["sequence"], NONE), no_number]
            )[kept],
            shapes=parsed(self.shapes, np.concatenate([no_shape, shapes])[kept], shape),
            operands=parsed(
                self.operands, np.concatenate([texts, no_operand])[kept], operands
            ),
        )
