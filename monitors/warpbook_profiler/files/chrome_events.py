"""What is kept of a trace file's events: columns that grow piece by piece."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress, islice
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
)
from warpbook_profiler.files.chrome_tables import (
    OF_KINDS,
    Kinds,
    Places,
    Table,
    in_order,
)
from warpbook_profiler.files.chrome_times import far_away, make_sense, nanoseconds
from warpbook_profiler.model.errors import TraceTooLarge
from warpbook_profiler.model.use import Collections, CpuUse

#: More events are refused: they would take some two GB.
MAX_EVENTS = CHROME.items
#: and so are more different names, launches and operands, in letters.
MAX_TEXT = CHROME.text_bytes
_LONGEST_PROCESS = 100
#: no program names more processes and threads
_MOST_LABELS = 10_000
_NO_ARGS = Args()
#: between parts of a text; JSON never holds this byte as it is
_JOIN = b"\0".join
_COMMON = {
    "kind": "i",
    "start_us": "d",
    "duration_us": "d",
    "external": "q",
    # of an operator what it was called with, of a kernel how it was launched
    "text": "i",
}
_OF_OPERATORS = {"sequence": "q"}
_OF_CALLS = {
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
    kinds: Kinds = field(default_factory=Kinds)
    shapes: Places = field(default_factory=Places)
    operands: Places = field(default_factory=Places)

    def join(self, later: Gathered) -> None:
        """Take what a later part of the same file holds."""
        self.base_ns, self.gpus = later.base_ns or self.base_ns, later.gpus or self.gpus
        self.rank = self.rank if later.rank is None else later.rank
        self.cpu, self.limits = later.cpu or self.cpu, later.limits or self.limits
        self.collections = later.collections or self.collections
        self.stalls = later.stalls or self.stalls
        self.labels |= later.labels
        self.spelled |= later.spelled
        self._extend(later.recorded)
        self.odd_fields += later.odd_fields
        self.ranges += later.ranges
        self.versions |= later.versions
        kind = self.kinds.join(later.kinds)
        operand = in_order(later.operands, self.operands)
        shape = in_order(later.shapes, self.shapes)
        self.operators.join(later.operators, kind=kind, text=operand)
        self.calls.join(later.calls, kind=kind, text=shape)

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
        if self.kinds.size + self.shapes.size + self.operands.size > MAX_TEXT:
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
        whole = [record for record in records if record.ph == "X"]
        if len(whole) < len(records):
            self._add_labels([record for record in records if record.ph == "M"])
        numbers = self.kinds
        kinds = [numbers[one.cat, one.name, one.pid, one.tid] for one in whole]
        used = {*kinds}
        if 0 in used:
            others = [one for one, kind in zip(whole, kinds, strict=True) if not kind]
            self.ranges += sum(one.cat == RANGE for one in others)
            self._extend(
                [
                    (one.ts, one.dur)
                    for one in others
                    if one.cat == "Trace" and one.dur and make_sense(one.ts, one.dur)
                ]
            )
        for add, are in (
            (self._add_operators, numbers.are_operators),
            (self._add_calls, numbers.are_calls),
        ):
            mine = {kind for kind in used if are[kind]}
            if mine == used:
                add(whole, kinds)
            elif mine:
                chosen = [kind in mine for kind in kinds]
                add([*compress(whole, chosen)], [*compress(kinds, chosen)])

    def _add_labels(self, records: list[Event]) -> None:
        for record in records[: _MOST_LABELS - len(self.labels)]:
            if record.args and record.name in ("process_name", "thread_name"):
                is_thread = record.name == "thread_name"
                at = self.kinds.threads[record.tid] if is_thread else NONE
                label = bytes(record.args.name)[1:_LONGEST_PROCESS].decode("latin-1")
                self.labels[record.pid, at] = label.strip('"')

    def _add_operators(self, events: list[Event], kinds: list[int]) -> None:
        args, places = self._add_common(self.operators, events, kinds), self.operands
        self.operators.add(
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

    def _add_calls(self, events: list[Event], kinds: list[int]) -> None:
        args, places = self._add_common(self.calls, events, kinds), self.shapes
        self.calls.add(
            device=[a.device for a in args],
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

    def _add_common(
        self, to: Table, events: list[Event], kinds: list[int]
    ) -> list[Args]:
        args = [event.args or _NO_ARGS for event in events]
        to.add(
            kind=kinds,
            start_us=[event.ts for event in events],
            duration_us=[event.dur for event in events],
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
        processes = self.kinds.processes
        places = {at: str(pid) for pid, at in processes.items()}
        labels = {(at, NONE): name for at, name in places.items()} | {
            (processes[pid], at): label
            for (pid, at), label in self.labels.items()
            if pid in processes
        }
        calls = self.calls.whole()
        calls |= {one: self.kinds.column(one, calls["kind"]) for one in OF_KINDS}
        gpu = calls.pop("gpu")
        calls["device"] = np.where(gpu == NONE, calls["device"], gpu)
        category, device = placed(calls, tuple(self.kinds.names), labels)
        return calls | {
            "category": category,
            "device": device,
            "told": calls["category"],
        }

    @property
    def is_torch(self) -> bool:
        """Tell whether all work on a GPU has a category, as torch's profiler writes."""
        unnamed = self._calls["told"] == Category.OTHER
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
        names = [str(name)[:_LONGEST_PROCESS] for name in self.kinds.processes]
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
        if name in OF_KINDS:
            operators[name] = self.kinds.column(name, operators["kind"])
        elif name not in operators:
            # there is no less than none
            of_calls = np.maximum(of_calls, NONE)
            operators[name] = np.full(len(self.operators), NONE, of_calls.dtype)
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
        names = tuple(map(plain, self.kinds.names))
        number, key = linked(
            {name: column[of_calls] for name, column in calls.items()},
            names,
            # no file has more than two ends for each call and its work
            islice(
                arrows(pieces, self.kinds.processes, self.kinds.threads),
                2 * len(self.calls),
            ),
        )
        self.linked_by = self.spelled.get(key.column, "" if key is USUAL else key.name)
        category = category[kept]
        no_numbers = np.full(len(category) - len(number), NONE, np.int64)
        start_ns = self.base_ns + nanoseconds(start_us[kept])
        duration_ns = nanoseconds(duration_us[kept])
        # what is done with is let go: this is where most memory is held
        del start_us, duration_us, on_host
        track = both("stream")
        track = np.where(track == NONE, both("thread"), track)[kept]
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
            start_ns=start_ns,
            duration_ns=duration_ns,
            device=both("device")[kept],
            track=track,
            correlation=np.concatenate([no_numbers, np.maximum(number, NONE)]),
            size_bytes=both("size_bytes")[kept],
            external=np.maximum(both("external"), NONE)[kept],
            annotates=both("annotates")[kept],
            sequence=np.concatenate(
                [np.maximum(operators["sequence"], NONE), no_number]
            )[kept],
            shapes=parsed(self.shapes, np.concatenate([no_shape, shapes])[kept], shape),
            operands=parsed(
                self.operands, np.concatenate([texts, no_operand])[kept], operands
            ),
        )
