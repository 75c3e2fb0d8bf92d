"""A timeline as a Chrome trace, for Perfetto and its kin."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from warpbook_profiler.timeline.timeline import Timeline

#: numbers, since some viewers read nothing else
_PROCESSES = {"gpu": 1, "annotation": 2, "call": 2, "operator": 2, "profiler": 2}
_PROCESS_NAMES = {1: "GPU", 2: "Host"}
_PIECE = 5000


def to_chrome_trace(timeline: Timeline, title: str) -> Iterator[bytes]:
    """Write it piece by piece; times are µs from the run's start.

    `baseTimeNanoseconds` is that start as Unix time, as Kineto writes it.
    """
    head = msgspec.json.encode(
        {
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": timeline.started_ns,
            "otherData": {"title": title},
        }
    )
    yield head[:-1] + b',"traceEvents":[\n'
    yield b",\n".join(map(msgspec.json.encode, _metadata(timeline)))
    names = [msgspec.json.encode(name).decode() for name in timeline.names]
    for number, (row, columns) in enumerate(
        zip(timeline.rows, timeline.columns, strict=True)
    ):
        end = f',"pid":{_PROCESSES[row.kind]},"tid":{number}}}'
        begin = f',\n{{"ph":"X","cat":"{row.kind}","name":'
        start_ns, end_ns = columns.spans.start_ns, columns.spans.end_ns
        for first in range(0, len(columns), _PIECE):
            piece = slice(first, first + _PIECE)
            # in whole nanoseconds until they are written: µs with three digits
            events = zip(
                columns.name[piece].tolist(),
                start_ns[piece].tolist(),
                (end_ns[piece] - start_ns[piece]).tolist(),
                strict=True,
            )
            yield "".join(
                f'{begin}{names[name]},"ts":{_us(at_ns)},"dur":{_us(took_ns)}{end}'
                for name, at_ns, took_ns in events
            ).encode()
    yield b"\n]}\n"


def _us(time_ns: int) -> str:
    sign, time_ns = ("-", -time_ns) if time_ns < 0 else ("", time_ns)
    return f"{sign}{time_ns // 1000}.{time_ns % 1000:03}"


def _metadata(timeline: Timeline) -> Iterator[dict[str, object]]:
    for pid, name in _PROCESS_NAMES.items():
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
    for number, row in enumerate(timeline.rows):
        about = {"ph": "M", "pid": _PROCESSES[row.kind], "tid": number}
        nested = f", level {row.level + 1}" if row.level else ""
        label = {"name": f"{row.label}{nested}"}
        yield {**about, "name": "thread_name", "args": label}
        yield {**about, "name": "thread_sort_index", "args": {"sort_index": number}}
