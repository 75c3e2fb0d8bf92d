"""Reads what Nsight Compute prints: `--csv` with `--page raw` or details, and text.

Its own report, `.ncu-rep`, NVIDIA's module reads.

Each launch has metrics, by the names of the page or of the hardware; where both mean
the same they are one here. A percentage is of the sustained peak of the unit.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from warpbook_monitors.budget import NCU
from warpbook_monitors.plain_file import check_plain
from warpbook_profiler.files.nsight.ncu_rep import ENDING, report_rows
from warpbook_profiler.model.errors import NotATrace, TraceFileError, TraceTooLarge

MAX_BYTES = NCU.most_bytes
MAX_LAUNCHES = NCU.items
MAX_LINES = 5_000_000
_LONGEST_NAME, _LONGEST_LINE, _MOST_COLUMNS = 1000, NCU.value_bytes, 10_000
#: what is of use, by the names that it has on the pages
METRICS = {
    "duration": ("gpu__time_duration.sum", "gpu__time_duration.avg", "Duration"),
    "compute": (
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "Compute (SM) Throughput",
        "Compute (SM) [%]",
        "SM [%]",
    ),
    "memory": (
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "Memory Throughput",
        "Memory [%]",
    ),
    "dram": (
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "DRAM Throughput",
    ),
    "l2": (
        "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
        "lts__throughput.avg.pct_of_peak_sustained_elapsed",
        "L2 Cache Throughput",
    ),
    "l1": (
        "l1tex__throughput.avg.pct_of_peak_sustained_active",
        "L1/TEX Cache Throughput",
    ),
    "occupancy": (
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "Achieved Occupancy",
    ),
    "waves": ("launch__waves_per_multiprocessor", "Waves Per SM"),
}
_KEYS = {name: key for key, names in METRICS.items() for name in names}
_TIME_NS = {
    **{"nsecond": 1.0, "ns": 1.0, "usecond": 1e3, "us": 1e3},
    **{"msecond": 1e6, "ms": 1e6, "second": 1e9, "s": 1e9},
}
_RATIOS = frozenset(("compute", "memory", "dram", "l2", "l1", "occupancy"))
#: of a peak; counters of several passes give a little more than all of it
MOST_RATIO = 1.02
#: with the thousands apart by commas, spaces or apostrophes, or not
_GROUPED = re.compile(r"\d{1,3}(?=([,'\u2019\s]))(?:\1\d{2,3})*\1\d{3}(?:\.\d*)?$")
_PLAIN = re.compile(r"\d*\.?\d+(?:[eE][+-]?\d+)?$")
_DECIMAL_COMMA = re.compile(r"\d[\d.'\u2019\s]*,\d+$")
_SEPARATORS = re.compile(r"[,'\u2019\s]")
#: a row of a summary is of so many launches, and has their mean
_INVOCATIONS = re.compile(r"Invocations (\d{1,9})")
#: between columns of a page for a person
_COLUMNS = re.compile(r"\s{2,}")
_CONTEXT = re.compile(r", (?:Context|Device) \d")
_LONGEST_ROW = 200
_IDS = ("ID", "Process ID", "Device", "Context", "Stream", "Block Size", "Grid Size")
_WHOLE = re.compile(r"\d{1,9}$")


class _DecimalCommaError(ValueError):
    """A number that another locale writes so."""


@dataclass
class Launch:
    """A launch that was measured; ratios are of a peak, None is "not known"."""

    name: str
    #: launches alike, whose means these are
    count: int = 1
    values: dict[str, float] = field(default_factory=dict)

    def get(self, key: str) -> float | None:
        """Give a metric, a key of `METRICS`: ns, waves, or a ratio of 0 to 1."""
        return self.values.get(key)

    def add(self, metric: str, unit: str, text: str) -> None:
        """Take a metric, if it is of use and a number.

        Raises:
            _DecimalCommaError: the number is of another locale.
        """
        key = _KEYS.get(metric)
        value = None if key is None else _number(text)
        if key is None or value is None:
            return
        unit = unit.strip().lower()
        if key == "duration":
            if unit not in _TIME_NS:
                return
            value *= _TIME_NS[unit]
        elif key in _RATIOS:
            # a page has "Memory Throughput" twice: as a share, and as bytes a second
            if unit not in ("%", ""):
                return
            value /= 100
        self.values.setdefault(key, value)


def looks_like_ncu(path: str) -> bool:
    """Tell by a name's ending: what is in it is told by `read_ncu`."""
    return Path(path).suffix.lower() in (".csv", ".txt", ".log", ENDING)


def read_ncu(path: str) -> list[Launch]:
    """Read the launches of a file.

    Raises:
        TraceFileError: it is no output of Nsight Compute, too large or can't be read.
    """
    try:
        check_plain(Path(path))
        if Path(path).stat().st_size > MAX_BYTES:
            raise TraceTooLarge(path, f"larger than {MAX_BYTES:,} bytes.")
        if Path(path).suffix.lower() == ENDING:
            launches = _from_report(path)
        else:
            with Path(path).open(
                encoding="utf-8", errors="replace", newline=""
            ) as file:
                launches = _from_lines(path, _lines(path, file))
    except _DecimalCommaError as number:
        raise TraceFileError(
            path,
            f"numbers with a decimal comma ({number}), which can't be told from one "
            "between thousands: run ncu with LC_ALL=C.",
        ) from None
    except (OSError, csv.Error) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise TraceFileError(path, f"can't be read: {why}") from problem
    if not any(launch.values for launch in launches):
        raise NotATrace(
            path,
            "no table of Nsight Compute with a metric that is known: write one by "
            "ncu --csv --page raw, or by ncu --csv.",
        )
    return launches


def _from_report(path: str) -> list[Launch]:
    launches = []
    for name, values in report_rows(path, [name for name in _KEYS if "__" in name]):
        launches.append(Launch(name))
        for metric, unit, value in values:
            launches[-1].add(metric, unit, repr(value))
    return launches


def _lines(path: str, file: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(file):
        if number >= MAX_LINES:
            raise TraceTooLarge(path, f"more than {MAX_LINES:,} lines.")
        yield line.replace("\0", "")[:_LONGEST_LINE]


def _from_lines(path: str, lines: Iterator[str]) -> list[Launch]:
    """Find where the table begins: tools and the program write lines before it."""
    for line in lines:
        if '"Kernel Name"' in line or line.startswith("Kernel Name,"):
            header = next(csv.reader([line]), [])[:_MOST_COLUMNS]
            if "Kernel Name" not in header:
                continue
            rows = csv.reader(lines)
            if "Metric Name" in header:
                return _by_metric(path, header, rows)
            return _by_launch(path, header, rows)
        if _title(line) is not None:
            return _from_text(path, line, lines)
    return []


def _by_metric(path: str, header: list[str], rows: Iterator[list[str]]) -> list[Launch]:
    """Read the page of details: a line for each metric of a launch."""
    place = {name: at for at, name in enumerate(header)}
    value_at = place.get("Metric Value", place.get("Average", -1))
    needed = (place["Kernel Name"], place["Metric Name"], value_at)
    if value_at < 0:
        return []
    unit_at, count_at = place.get("Metric Unit", -1), place.get("Invocations", -1)
    # without an ID a row is of all launches that are alike in these
    ids = [place[name] for name in _IDS if name in place]
    by_key: dict[tuple[str, ...], Launch] = {}
    for row in rows:
        if len(row) <= max(needed):
            continue
        name = row[needed[0]][:_LONGEST_NAME]
        key = (name, *(row[at] for at in ids if at < len(row)))
        launch = by_key.get(key)
        if launch is None:
            if len(by_key) >= MAX_LAUNCHES:
                raise TraceTooLarge(path, f"more than {MAX_LAUNCHES:,} launches.")
            launch = by_key[key] = Launch(name)
            if 0 <= count_at < len(row) and _WHOLE.match(row[count_at]):
                launch.count = max(int(row[count_at]), 1)
        unit = row[unit_at] if 0 <= unit_at < len(row) else ""
        launch.add(row[needed[1]], unit, row[value_at])
    return list(by_key.values())


def _by_launch(path: str, header: list[str], rows: Iterator[list[str]]) -> list[Launch]:
    """Read the raw page: a column for each metric, and their units in a first line."""
    name_at = header.index("Kernel Name")
    of_use = [at for at, name in enumerate(header) if name in _KEYS]
    units: list[str] = []
    launches: list[Launch] = []
    for row in rows:
        if len(row) <= name_at:
            continue
        if not units and not row[name_at]:
            units = row
            continue
        if len(launches) >= MAX_LAUNCHES:
            raise TraceTooLarge(path, f"more than {MAX_LAUNCHES:,} launches.")
        launch = Launch(row[name_at][:_LONGEST_NAME])
        for at in of_use:
            if at < len(row):
                launch.add(header[at], units[at] if at < len(units) else "", row[at])
        launches.append(launch)
    return launches


def _from_text(path: str, first: str, lines: Iterator[str]) -> list[Launch]:
    """Read the page of details as it is printed for a person."""
    launches: list[Launch] = []
    _take_line(path, first, launches)
    for line in lines:
        _take_line(path, line.rstrip("\r\n"), launches)
    return launches


def _take_line(path: str, line: str, launches: list[Launch]) -> None:
    title = _title(line)
    if title is not None:
        if len(launches) >= MAX_LAUNCHES:
            raise TraceTooLarge(path, f"more than {MAX_LAUNCHES:,} launches.")
        count = _INVOCATIONS.search(line, len(title))
        launches.append(
            Launch(title[:_LONGEST_NAME], max(int(count[1]), 1) if count else 1)
        )
        return
    if not launches or not line.startswith("    ") or len(line) > _LONGEST_ROW:
        return
    columns = _COLUMNS.split(line.strip())
    # a summary has minimum, maximum and mean
    if len(columns) in (2, 3, 4, 5):
        unit = columns[1] if len(columns) in (3, 5) else ""
        launches[-1].add(columns[0], unit, columns[-1])


def _title(line: str) -> str | None:
    """Take the kernel out of "  name (264, 1, 1)x(256, 1, 1), Context 1, ..."."""
    ends = [match.start() for match in _CONTEXT.finditer(line)]
    if not ends or not line.startswith("  ") or line[2:3].isspace():
        return None
    # the last ", Context 1", or the last ", Device 0" where there is none
    end = max((at for at in ends if line.startswith(", C", at)), default=ends[-1])
    name = line[2:end]
    before, launch, _ = name.rpartition(")x(")
    return before.rpartition(" (")[0] if launch and " (" in before else name


def _number(text: str) -> float | None:
    """Read a number; None where it is none.

    Raises:
        _DecimalCommaError: it has a comma that stands not between thousands.
    """
    text = text.strip()
    if _GROUPED.match(text):
        text = _SEPARATORS.sub("", text)
    elif not _PLAIN.match(text):
        if _DECIMAL_COMMA.match(text):
            raise _DecimalCommaError(text[:30])
        return None
    value = float(text)
    return value if value < 1e18 else None
