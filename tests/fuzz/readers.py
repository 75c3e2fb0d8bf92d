"""Every reader of something from outside, called within this process: many a second."""

from __future__ import annotations

import contextlib
import gc
import gzip
import itertools
import json
import random
import re
import signal
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec
import numpy as np
import psutil
from msgspec.json import Decoder
from tornado.web import HTTPError

from tests.extension.server.test_ingest import report
from tests.extension.server.test_timelines import packed
from tests.fuzz.driver import BAND, GOOD, PAGE, SUBSCRIBE, gunzipped
from tests.fuzz.inputs import TEXTS, Hostile
from tests.hub.service.test_every_route import BODIES
from tests.profiler.trace.nsys_file import SCHEMA, write_nsys
from tests.profiler.trace.test_ncu import DETAILS, RAW, TEXT
from tests.profiler.trace.written import program, trace
from warpbook.hub_protocol import (
    Heartbeat,
    Hello,
    JobResult,
    Report,
    ServerRequest,
    WorkRequest,
)
from warpbook.protocol import (
    PROTOCOL_VERSION,
    CellBand,
    CellReport,
    CellRun,
    ClientMessage,
    OutOfMemory,
)
from warpbook.server.web import parameters
from warpbook_hub.course.roster_csv import read_roster
from warpbook_hub.errors import HubError
from warpbook_hub.lti.platform import Launch, LtiPlatform, launch_of
from warpbook_hub.service import parameters as hub_parameters
from warpbook_hub.service.api.routes import API_ROUTES
from warpbook_hub.service.pages.routes import PAGE_ROUTES
from warpbook_monitors.archive.columns import (
    DamagedColumn,
    pack_column,
    unpack_column,
)
from warpbook_monitors.archive.errors import ArchiveError
from warpbook_monitors.budget import NotJson, decode_json
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.recordings.recording import read_recording
from warpbook_monitors.recordings.replay import SHIPPED
from warpbook_profiler.files.file_profile import read_profile
from warpbook_profiler.files.nsight.database import MAGIC
from warpbook_profiler.files.nsight.limiters import kernel_limits
from warpbook_profiler.files.nsight.ncu import read_ncu
from warpbook_profiler.files.read_trace import read_trace
from warpbook_profiler.timeline.timeline_body import NotATimeline, unpack

#: of CPU, for one input of some kilobytes
MOST_CPU_S = 5.0
#: of memory that a process may have more of after many inputs
MARGIN_BYTES = 20 << 20
#: of a column, whatever its type is
SQL_VALUES = (None, -1, 0, 2**31, 2**63 - 1, -(2**63), 1e308, 0.5, b"\xff\x00", b"")
#: what the readers raise on purpose
_REFUSALS = (
    *(MonitorError, HubError, HTTPError, NotJson, NotATimeline, ArchiveError),
    *(parameters.BadBody, DamagedColumn, msgspec.ValidationError),
)


_MINE = {"protocol": PROTOCOL_VERSION, "kernel_id": "k"}
_MESSAGES: tuple[tuple[Any, Any], ...] = (
    (ClientMessage, SUBSCRIBE),
    (tuple[CellBand, ...], [BAND]),
    (CellReport, report()),
    (CellRun, {**BAND, **_MINE, "started_ms": 0.0}),
    (OutOfMemory, {**_MINE, "notebook": None, "cell_id": None, "failed": None}),
    (Hello, {"cpu_slots": 1, "devices": [{"uuid": "GPU-1", "name": "x"}]}),
    (WorkRequest, {"free_cpu_slots": 1, "free_devices": ["GPU-1"]}),
    (Heartbeat, {"leases": [{"job": "j", "fence": 1}], "has": None}),
    (JobResult, {"lease": {"job": "j", "fence": 1}, "facts": {}, "evidence": ""}),
    (Report, {"node": "n", "gpus": [], "idle_end_ms": 1}),
    (ServerRequest, {"course": "gpu101", "username": "ada", "minutes": 10}),
    (Launch, dict.fromkeys(Launch.__struct_fields__, "x")),
)
_ROSTER = (
    b"username,first_name,last_name,email,section,team\n"
    b"ada,Ada,L,a@x,mon,red\nbob,Bob,M,b@x,tue,red\neve,Eve,N,,mon,\n"
)
_PLATFORM = LtiPlatform("https://lms", "c", ("1",), *["https://lms/x"] * 3)
_LTI = "https://purl.imsglobal.org/spec/lti"
_CLAIMS = {
    "sub": "1",
    "given_name": "Ada",
    "email": "a@x",
    f"{_LTI}/claim/context": {"id": "c", "title": "GPUs"},
    f"{_LTI}/claim/roles": ["Learner", "Instructor"],
    f"{_LTI}/claim/custom": {"lab": "vector-add"},
    f"{_LTI}-ags/claim/endpoint": {"lineitems": "https://lms/i", "lineitem": "https:"},
    f"{_LTI}-nrps/claim/namesroleservice": {"context_memberships_url": "https://[x"},
}


class Reader(NamedTuple):
    """What reads an input, and how many of a hundred inputs."""

    name: str
    share: int
    spoilt: Callable[[Hostile], Any]
    read: Callable[[Any], object]


@dataclass
class Counted:
    """What came of the inputs to one reader."""

    inputs: int = 0
    refused: int = 0
    most_cpu_s: float = 0.0
    #: the number of the input that took it
    slowest: int = 0
    failures: list[str] = field(default_factory=list)


def readers(folder: Path) -> list[Reader]:
    """Give all of them; what is read as a file is written to the folder."""
    bodies = [
        *((Decoder(kind), good) for kind, good in _MESSAGES),
        *(
            (Decoder(route.given), BODIES.get(route.path, {}))
            for route in API_ROUTES
            if route.method == "POST"
        ),
    ]
    queries = [
        *((parameters.read_query, kind) for kind in PAGE.values()),
        *((hub_parameters.read_query, route.given) for route in API_ROUTES),
        *((hub_parameters.read_query, route.given) for route in PAGE_ROUTES),
    ]

    def body(hostile: Hostile) -> Any:
        decoder, good = hostile.dice.choice(bodies)
        return decoder, hostile.body(good)

    def query(hostile: Hostile) -> Any:
        read, kind = hostile.dice.choice(queries)
        texts: dict[str, list[bytes]] = {}
        for name, value in hostile.query(kind.__struct_encode_fields__, GOOD):
            texts.setdefault(name, []).append(value)
        return read, texts, kind

    tiny = trace(*program()[:40])

    def from_file(
        name: str, share: int, goods: list[bytes], read: Callable[[str], object]
    ) -> Reader:
        path = folder / name

        def spoilt(hostile: Hostile) -> None:
            good = hostile.dice.choice(goods)
            if good == tiny and hostile.dice.random() < 0.5:
                path.write_bytes(hostile.body(json.loads(good)))
            elif good.startswith(MAGIC) and hostile.dice.random() < 0.5:
                path.write_bytes(good)
                _spoil_rows(path, hostile)
            else:
                most = hostile.dice.choice((1, 1, 7))
                path.write_bytes(hostile.bytes_of(good, most))

        return Reader(path.stem, share, spoilt, lambda _: read(str(path)))

    def of_bytes(
        name: str, share: int, good: bytes, read: Callable[[bytes], object]
    ) -> Reader:
        return Reader(name, share, lambda hostile: hostile.bytes_of(good, 3), read)

    def claims(hostile: Hostile) -> Any:
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(hostile.body(_CLAIMS))
        return {}

    recording = b"\n".join(gunzipped(SHIPPED).splitlines()[:20]) + b"\n"
    column = pack_column(np.arange(100, dtype=np.float64))
    return [
        Reader(
            "bodies of JSON", 34, body, lambda given: decode_json(given[1], given[0])
        ),
        Reader("queries", 14, query, lambda given: given[0](*given[1:])),
        of_bytes("rosters", 8, _ROSTER, read_roster),
        of_bytes("timelines", 6, packed(), unpack),
        of_bytes("columns of the archive", 5, column, lambda c: unpack_column(c, 100)),
        Reader("launches of a platform", 5, claims, _launched),
        from_file(
            "recordings.jsonl", 4, [recording], lambda at: read_recording(Path(at))
        ),
        from_file("traces.json", 8, [tiny, gzip.compress(tiny)], read_trace),
        from_file("profiles.json", 4, [tiny], read_profile),
        from_file("exports.sqlite", 6, [_export(folder)], read_trace),
        from_file(
            "tables.csv",
            6,
            [RAW.encode(), DETAILS.encode(), TEXT.encode()],
            lambda at: kernel_limits(read_ncu(at)),
        ),
    ]


def _spoil_rows(path: Path, hostile: Hostile) -> None:
    """Give a column of a table, or its type, another value."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        tables = [
            (name, column)
            for name in re.findall(r"CREATE TABLE (\w+)", SCHEMA)
            for _, column, *_ in database.execute(f"PRAGMA table_info({name})")
        ]
        table, column = hostile.dice.choice(tables)
        value = hostile.dice.choice((*SQL_VALUES, *TEXTS[:-1]))
        with contextlib.suppress(sqlite3.Error, UnicodeError):
            every = hostile.dice.choice((1, 2, 7))
            database.execute(
                f"UPDATE OR REPLACE {table} SET {column} = ? WHERE rowid % {every} = 0",
                (value,),
            )


def run(seed: int, first: int, count: int, folder: Path) -> tuple[list[Any], int, int]:
    """Read so many inputs; each is drawn from the seed and its own number.

    Returns:
        what came of each reader, and resident bytes before and after.
    """
    known = readers(folder)
    shares = list(itertools.accumulate(reader.share for reader in known))
    counted = {reader.name: Counted() for reader in known}
    before_bytes = 0
    # whatever does not end is ended
    signal.signal(signal.SIGPROF, _too_slow)
    for number in range(first, first + count):
        if number == first + count // 10:
            before_bytes = _resident_bytes()
        dice = random.Random(seed * 1_000_003 + number)
        reader = dice.choices(known, cum_weights=shares)[0]
        hostile = Hostile(seed * 1_000_003 + number)
        _read(reader, reader.spoilt(hostile), number, counted[reader.name])
    return list(counted.items()), before_bytes, _resident_bytes()


def _read(reader: Reader, given: Any, number: int, counted: Counted) -> None:
    counted.inputs += 1
    begun_s = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, MOST_CPU_S)
    try:
        reader.read(given)
    except _REFUSALS:
        counted.refused += 1
    except Exception as problem:  # noqa: BLE001 - it is what is looked for
        counted.failures.append(f"input {number}: {problem!r}"[:300])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    taken_s = time.process_time() - begun_s
    if taken_s > counted.most_cpu_s:
        counted.most_cpu_s, counted.slowest = taken_s, number


def _too_slow(*_: object) -> NoReturn:
    raise TimeoutError(f"more than {MOST_CPU_S:g} s of CPU")


def _resident_bytes() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def _launched(claims: Any) -> object:
    if isinstance(claims, dict):
        return launch_of(claims, _PLATFORM, "gpu101", "ada")
    return None


def _export(folder: Path) -> bytes:
    """Write a small export of Nsight Systems."""
    path = folder / "good.sqlite"
    source = folder / "good.json"
    source.write_bytes(trace(*program()[:40]))
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA page_size = 512")
    write_nsys(path, source).close()
    return path.read_bytes()
