"""Writes what `nsys export --type sqlite` writes, by NVIDIA's documented schema.

No export of a real run is at hand: the events are those of a real trace of torch.
"""

import re
import sqlite3
from pathlib import Path
from typing import Any

from warpbook_monitors.trace.chrome import read_chrome_trace
from warpbook_monitors.trace.columns import NONE, Category, Columns

PID, TID = 4321, 77
GLOBAL_PID = PID << 24
GLOBAL_TID = GLOBAL_PID | TID
#: "SQLite Export Schema Reference" of Nsight Systems, the columns that are of use
SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
  start INTEGER NOT NULL, -- Event start timestamp (ns), as seen by the GPU.
  end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
  launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL,
  gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
  blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
  staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL,
  localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
  gridId INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (
  start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER,
  globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL,
  deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (
  start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER,
  globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
  start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,
  returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE NVTX_EVENTS (
  start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
  category INTEGER, color INTEGER, text TEXT, globalTid INTEGER,
  endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
CREATE TABLE TARGET_INFO_GPU (
  vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, smCount INTEGER,
  computeMajor INTEGER, computeMinor INTEGER, maxWarpsPerSm INTEGER,
  threadsPerWarp INTEGER, maxRegistersPerSm INTEGER, maxShmemPerSm INTEGER);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER NOT NULL);
"""
_KINDS = {"HtoD": 1, "DtoH": 2, "DtoD": 8, "PtoP": 10}
_MEMORY = {"Pageable": 1, "Pinned": 2, "Device": 3}
_COPY = re.compile(r"Memcpy (\w+) \((\w+) -> (\w+)\)")


def write_nsys(path: Path, source: Path) -> sqlite3.Connection:
    """Write a trace of torch as Nsight Systems would, and leave the file open."""
    events, run = read_chrome_trace(str(source))
    base_ns = int(events.start_ns[0])
    database = sqlite3.connect(path)
    database.executescript(SCHEMA)
    for number, text in enumerate(events.names):
        is_call = re.match(r"cu(da)?[A-Z]", text)
        name_of_call = f"{text}_v7000" if is_call else text
        database.execute("INSERT INTO StringIds VALUES (?, ?)", (number, name_of_call))
    for row in range(len(events)):
        _insert(database, events, row, base_ns)
    gpu = run.gpus[0]
    database.execute(
        "INSERT INTO TARGET_INFO_GPU VALUES (0, 0, ?, ?, ?, ?, 64, 32, ?, ?)",
        (
            *(gpu.name, gpu.sm_count, *(gpu.compute_capability or (0, 0))),
            *(gpu.registers_per_sm, gpu.shared_memory_per_sm_bytes),
        ),
    )
    database.execute(
        "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?)", (base_ns,)
    )
    database.commit()
    return database


def _insert(
    database: sqlite3.Connection, events: Columns, row: int, base_ns: int
) -> None:
    begin = int(events.start_ns[row]) - base_ns
    end = begin + int(events.duration_ns[row])
    name = int(events.name[row])
    category = Category(events.category[row])
    work = (begin, end, int(events.device[row]), 1, int(events.track[row]))
    work += (int(events.correlation[row]), GLOBAL_PID)
    values: tuple[Any, ...]
    if category == Category.KERNEL:
        shape = events.shapes[events.shape[row]] if events.shape[row] != NONE else None
        launch = (1, 1, 1, 1, 1, 1) if shape is None else (*shape.grid, *shape.block)
        registers = 0 if shape is None else shape.registers_per_thread
        shared = 0 if shape is None else shape.shared_memory_bytes
        values = (*work, name, name, name, None, None, registers, *launch)
        _add(database, "KERNEL", (*values, 0, shared, 0, 0, row))
    elif category == Category.COPY:
        match = _COPY.match(events.names[name])
        assert match is not None
        values = (*work, int(events.size_bytes[row]), _KINDS[match[1]], None)
        _add(database, "MEMCPY", (*values, _MEMORY[match[2]], _MEMORY[match[3]]))
    elif category == Category.MEMSET:
        _add(database, "MEMSET", (*work, 0, int(events.size_bytes[row])))
    elif category == Category.API:
        values = (begin, end, 0, GLOBAL_TID, int(events.correlation[row]), name, 0)
        _add(database, "RUNTIME", (*values, None))


def _add(database: sqlite3.Connection, table: str, values: tuple[Any, ...]) -> None:
    marks = ", ".join("?" * len(values))
    database.execute(
        f"INSERT INTO CUPTI_ACTIVITY_KIND_{table} VALUES ({marks})", values
    )
