"""Reads what `nsys export --type sqlite` writes, as columns like a trace of torch.

The schema is NVIDIA's ("SQLite Export Schema Reference" of Nsight Systems); it differs
between versions, so a table or a column that is not there is not known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import numpy as np

from warpbook_profiler.events.columns import (
    NONE,
    Bools,
    Category,
    Columns,
    Int64s,
    KernelShape,
    groups,
    make_columns,
)
from warpbook_profiler.events.run import GpuLimits, Run
from warpbook_profiler.files.nsight.database import Database, sensible
from warpbook_profiler.model.errors import NotATrace, TraceDamaged

_CUPTI = "CUPTI_ACTIVITY_KIND_"
#: of CUPTI's CUpti_ActivityMemcpyKind and CUpti_ActivityMemoryKind
_DIRECTIONS = {
    **{1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD"},
    **{7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP"},
}
_MEMORY = {1: "Pageable", 2: "Pinned", 3: "Device", 4: "Array", 5: "Managed"}
#: of NVTX_EVENTS: push and pop, start and end
_RANGES = (59, 60)
#: "cudaLaunchKernel_v7000"
_VERSION = re.compile(r"(_ptsz|_ptds)?_v\d+$")
_WHEN = ("start", "end")
_WORK = (*_WHEN, "deviceId", "streamId", "correlationId", "globalPid")
_NEEDED = (*_WHEN, "deviceId", "streamId")
_LAUNCH = (
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    *("registersPerThread", "staticSharedMemory", "dynamicSharedMemory"),
)
_MOST_GPUS, _MOST_NAMED = 1024, 10
_COUNT = 2**40
_CUT = (
    "The file is cut off, as one whose copy did not finish: its tables may end early, "
    "and this is of what they still hold."
)


@dataclass
class _Gathered:
    """Events of all tables, piece by piece."""

    names: dict[str, int] = field(default_factory=dict)
    shapes: dict[KernelShape, int] = field(default_factory=dict)
    pieces: list[dict[str, Int64s]] = field(default_factory=list)

    def name(self, text: str) -> int:
        return self.names.setdefault(text, len(self.names))

    def add(self, category: Category, rows: dict[str, Int64s], name: Int64s) -> None:
        """Take rows; those whose times can't be are left out by the caller."""
        count = len(name)
        nothing = np.full(count, NONE, np.int64)
        columns = (
            *("start", "end", "device", "track", "correlation", "size", "process"),
            *("shape", "annotates"),
        )
        piece = {key: rows.get(key, nothing) for key in columns}
        piece["category"] = np.full(count, int(category), np.int64)
        piece["name"] = name
        self.pieces.append(piece)


def read_nsys(path: str) -> tuple[Columns, Run]:
    """Read an export of Nsight Systems.

    Raises:
        TraceFileError: the file is damaged, too large, or no such export.
    """
    gathered = _Gathered()
    with Database(path) as database:
        texts = _strings(database)
        _add_kernels(database, gathered, texts)
        _add_copies(database, gathered)
        _add_calls(database, gathered, texts)
        _add_ranges(database, gathered, texts)
        graphs = _add_graphs(database, gathered)
        gpus = _gpus(database)
        began_ns = _began_ns(database)
        unknown = _unknown_tables(database)
        is_cut = database.is_cut
    if is_cut and not gathered.pieces:
        raise TraceDamaged(path, "the file is cut off before its events.")
    if not gathered.pieces:
        raise NotATrace(
            path,
            "an SQLite file without CUDA's tables of Nsight Systems: export a report "
            "that was recorded with --trace=cuda by nsys export --type sqlite."
            f"{unknown}",
        )
    whole = {
        key: np.concatenate([piece[key] for piece in gathered.pieces])
        for key in gathered.pieces[0]
    }
    kept = sensible(whole["start"]) & sensible(whole["end"])
    kept &= whole["end"] >= whole["start"]
    senseless = int(np.count_nonzero(~kept))
    process, others = _main_process(whole, kept)
    if process is not None:
        kept &= (whole["process"] == process) | (whole["process"] == NONE)
    if not kept.any():
        raise NotATrace(path, f"no event of CUDA in it.{unknown}")
    whole = {key: values[kept] for key, values in whole.items()}
    columns = make_columns(
        names=(tuple(gathered.names), whole["name"]),
        categories=whole["category"].astype(np.int8),
        start_ns=began_ns + whole["start"],
        duration_ns=whole["end"] - whole["start"],
        device=whole["device"],
        track=np.maximum(whole["track"], 0),
        correlation=whole["correlation"],
        size_bytes=whole["size"],
        shapes=(tuple(gathered.shapes), whole["shape"].astype(np.int32)),
        annotates=whole["annotates"] > 0,
    )
    run = _run(
        columns, gpus, senseless, tuple(_notes(columns, others, graphs, unknown))
    )
    if is_cut:
        return columns, replace(run, notes=(_CUT, *run.notes))
    return columns, run


def _strings(database: Database) -> dict[int, str]:
    rows = database.rows("StringIds", ("id", "value"))
    return {
        number: text
        for number, text in rows
        if isinstance(number, int) and isinstance(text, str)
    }


def _named(
    gathered: _Gathered, ids: Int64s, texts: dict[int, str], other: str
) -> Int64s:
    """Give each row its name's number; equal ids are looked up once."""
    first, group = groups(ids)
    places = []
    for row in first.tolist():
        text = texts.get(int(ids[row]), other)
        places.append(gathered.name(_VERSION.sub("", text[:2000])))
    return np.array(places or [0], np.int64)[group]


def _work(rows: dict[str, Int64s]) -> dict[str, Int64s]:
    return {
        "start": rows["start"],
        "end": rows["end"],
        "device": np.where(rows["deviceId"] < _MOST_GPUS, rows["deviceId"], NONE),
        "track": rows["streamId"],
        "correlation": np.maximum(rows["correlationId"], NONE),
        "process": _process(rows["globalPid"]),
    }


def _process(serialized: Int64s) -> Int64s:
    """Take the process out of a serialized id, as NVIDIA documents it."""
    process: Int64s = np.where(serialized == NONE, NONE, (serialized >> 24) & 0xFFFFFF)
    return process


def _add_kernels(
    database: Database, gathered: _Gathered, texts: dict[int, str]
) -> None:
    names = ("demangledName", "shortName")
    rows = database.numbers(_CUPTI + "KERNEL", (*_WORK, *_LAUNCH, *names), _NEEDED)
    if not len(rows["start"]):
        return
    is_known = rows["demangledName"] != NONE
    ids = np.where(is_known, rows["demangledName"], rows["shortName"])
    work = _work(rows)
    work["shape"] = _shapes(gathered, rows)
    gathered.add(
        Category.KERNEL, work, _named(gathered, ids, texts, "(unnamed kernel)")
    )


def _shapes(gathered: _Gathered, rows: dict[str, Int64s]) -> Int64s:
    values = [np.clip(rows[name], NONE, _COUNT) for name in _LAUNCH]
    first, group = groups(*values)
    places = []
    for row in first.tolist():
        launch = [int(value[row]) for value in values]
        if min(launch[:6]) < 1:
            places.append(NONE)
            continue
        shape = KernelShape(
            (launch[0], launch[1], launch[2]),
            (launch[3], launch[4], launch[5]),
            max(launch[6], 0),
            max(launch[7], 0) + max(launch[8], 0),
        )
        places.append(gathered.shapes.setdefault(shape, len(gathered.shapes)))
    return np.array(places, np.int64)[group]


def _add_copies(database: Database, gathered: _Gathered) -> None:
    kinds = ("copyKind", "srcKind", "dstKind")
    rows = database.numbers(_CUPTI + "MEMCPY", (*_WORK, "bytes", *kinds), _NEEDED)
    if len(rows["start"]):
        first, group = groups(*(rows[kind] for kind in kinds))
        names = [
            gathered.name(_copy_name(*(int(rows[kind][row]) for kind in kinds)))
            for row in first.tolist()
        ]
        work = {**_work(rows), "size": np.maximum(rows["bytes"], NONE)}
        gathered.add(Category.COPY, work, np.array(names, np.int64)[group])
    rows = database.numbers(_CUPTI + "MEMSET", (*_WORK, "bytes"), _NEEDED)
    if len(rows["start"]):
        name = np.full(len(rows["start"]), gathered.name("Memset (Device)"))
        work = {**_work(rows), "size": np.maximum(rows["bytes"], NONE)}
        gathered.add(Category.MEMSET, work, name)


def _copy_name(kind: int, source: int, target: int) -> str:
    """Write a copy as Kineto does, by which its direction and memory are known."""
    direction = _DIRECTIONS.get(kind, "Unknown")
    unknown = "Unknown"
    return (
        f"Memcpy {direction} ({_MEMORY.get(source, unknown)} -> "
        f"{_MEMORY.get(target, unknown)})"
    )


def _add_calls(database: Database, gathered: _Gathered, texts: dict[int, str]) -> None:
    wanted = (*_WHEN, "globalTid", "correlationId", "nameId")
    rows = database.numbers(_CUPTI + "RUNTIME", wanted, wanted)
    if len(rows["start"]):
        gathered.add(
            Category.API,
            {**_host(rows), "correlation": np.maximum(rows["correlationId"], NONE)},
            _named(gathered, rows["nameId"], texts, "(unnamed call)"),
        )


def _host(rows: dict[str, Int64s]) -> dict[str, Int64s]:
    return {
        "start": rows["start"],
        "end": rows["end"],
        "track": rows["globalTid"] & 0xFFFFFF,
        "process": _process(rows["globalTid"]),
    }


def _add_ranges(database: Database, gathered: _Gathered, texts: dict[int, str]) -> None:
    numbers: list[tuple[int, int, int, int]] = []
    wanted = (*_WHEN, "eventType", "globalTid", "text", "textId")
    rows = database.rows("NVTX_EVENTS", wanted, wanted[:4])
    for start, end, kind, thread, text, text_id in rows:
        times = (start, end, thread)
        if kind not in _RANGES or not all(isinstance(one, int) for one in times):
            continue
        if not all(0 <= one < 2**62 for one in times):
            continue
        label = text if isinstance(text, str) and text else texts.get(text_id)
        name = gathered.name((label or "(unnamed range)")[:2000])
        numbers.append((start, end, thread, name))
    if not numbers:
        return
    columns = np.array(numbers, np.int64).T
    host = _host({"start": columns[0], "end": columns[1], "globalTid": columns[2]})
    host["annotates"] = np.ones(len(numbers), np.int64)
    gathered.add(Category.OPERATOR, host, columns[3])


def _add_graphs(database: Database, gathered: _Gathered) -> int:
    """Take graphs that were recorded as a whole; give how many."""
    rows = database.numbers(_CUPTI + "GRAPH_TRACE", _WORK, _NEEDED)
    count = len(rows["start"])
    if count:
        name = np.full(count, gathered.name("(a CUDA graph, recorded as a whole)"))
        gathered.add(Category.KERNEL, _work(rows), name)
    return count


def _gpus(database: Database) -> tuple[GpuLimits, ...]:
    """Give the GPUs by CUDA's number of each."""
    wanted = (
        *("id", "smCount", "computeMajor", "computeMinor", "maxWarpsPerSm"),
        *("threadsPerWarp", "maxRegistersPerSm", "maxShmemPerSm"),
    )
    numbers = database.numbers("TARGET_INFO_GPU", wanted)
    names = [name for (name,) in database.rows("TARGET_INFO_GPU", ("name",))]
    cuda = database.numbers("TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId"))
    number = dict(zip(cuda["gpuId"].tolist(), cuda["cudaId"].tolist(), strict=True))
    placed: dict[int, GpuLimits] = {}
    for row, name in enumerate(names[:_MOST_GPUS]):
        fields = {key: int(numbers[key][row]) for key in wanted}
        at = number.get(fields["id"], fields["id"])
        if not 0 <= at < _MOST_GPUS or not isinstance(name, str):
            continue

        def known(key: str, of_gpu: dict[str, int] = fields) -> int | None:
            return of_gpu[key] if 0 < of_gpu[key] < _COUNT else None

        warps, threads = known("maxWarpsPerSm"), known("threadsPerWarp")
        major = known("computeMajor")
        placed[at] = GpuLimits(
            name[:200],
            None if major is None else (major, max(fields["computeMinor"], 0)),
            known("smCount"),
            warps * threads if warps and threads else None,
            known("maxRegistersPerSm"),
            known("maxShmemPerSm"),
        )
    return tuple(
        placed.get(at, GpuLimits("")) for at in range(max(placed, default=-1) + 1)
    )


def _began_ns(database: Database) -> int:
    table = database.numbers("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))
    times = table["utcEpochNs"]
    return int(times[0]) if len(times) and 0 <= times[0] < 4 * 10**18 else 0


def _main_process(whole: dict[str, Int64s], kept: Bools) -> tuple[int | None, int]:
    """Choose the process with most GPU work: ids of calls are a process's own."""
    on_gpu = kept & np.isin(whole["category"], (1, 2, 3)) & (whole["process"] != NONE)
    processes, counts = np.unique(whole["process"][on_gpu], return_counts=True)
    if not len(processes):
        return None, 0
    return int(processes[counts.argmax()]), len(processes) - 1


def _unknown_tables(database: Database) -> str:
    names = ", ".join(sorted(database.unknown)[:_MOST_NAMED])
    if not names:
        return ""
    return f" Tables of a version that is not known are not read: {names[:500]}."


def _notes(columns: Columns, others: int, graphs: int, unknown: str) -> list[str]:
    said = [
        "Recorded by Nsight Systems: times are those with it at work, and how much it "
        "slowed the host down is not known. Operators and their shapes are not in it, "
        "so FLOPs, bytes and what limits a kernel are known from names and launches "
        "alone."
    ]
    if not columns.is_in(Category.API).any():
        said.append("It has no calls of CUDA: why the GPU idled is not known.")
    if unknown:
        said.append(unknown.strip())
    if others:
        said.append(
            f"{others:,} other process{'es' if others > 1 else ''} with GPU work "
            "were left out: this is the one with most."
        )
    if graphs:
        said.append(
            f"{graphs:,} launches of CUDA graphs were recorded as a whole: their "
            "kernels are not known (record with --cuda-graph-trace=node)."
        )
    return said


def _run(
    columns: Columns,
    gpus: tuple[GpuLimits, ...],
    senseless: int,
    notes: tuple[str, ...],
) -> Run:
    end_ns = columns.end_ns
    on_host = columns.is_in(Category.API, Category.OPERATOR)
    devices = np.unique(columns.device[columns.device >= 0]).tolist()
    names = [gpus[at].name for at in devices if at < len(gpus) and gpus[at].name]
    last_ns = int(end_ns.max())
    return Run(
        start_ns=int(columns.start_ns[0]),
        code_end_ns=int(end_ns[on_host].max(initial=int(columns.start_ns[0]) + 1)),
        end_ns=last_ns,
        gpu_name=", ".join(names) or ("unnamed GPU" if devices else None),
        gpus=gpus,
        cuda_used=bool(devices),
        senseless_events=senseless,
        notes=notes,
        is_torch=False,
    )
