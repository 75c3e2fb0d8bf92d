"""Samples of instructions become samples of source lines, by cubins' line tables."""

from __future__ import annotations

import ctypes
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from warpbook_profiler.model.stalls import (
    KernelStalls,
    Language,
    LineStalls,
    Place,
    SourceFile,
    Stalls,
)
from warpbook_profiler.stalls.line_table import BadCubin, LineTable, SourceLine
from warpbook_profiler.stalls.sampler import KernelSamples, Samples

_STALLED = "smsp__pcsamp_warps_issue_stalled_"
_NOT_ISSUED = "_not_issued"
_BARRIER = "barrier"
#: more is left out: kernels, lines of one, and lines of Python of one
_MOST_KERNELS, _MOST_LINES, _MOST_ORIGINS = 20, 100, 20
#: characters of a name, of a file, and of all files
_MOST_NAME, _MOST_TEXT, _MOST_TEXTS = 1000, 100_000, 250_000


@dataclass(frozen=True)
class Source:
    """A file of a line table, as it is shown."""

    name: str
    #: empty where it is not here
    text: str
    language: Language
    #: its lines are given to those that call them
    is_library: bool = False


#: of the samples of known kernels: how many of unknown ones are told
_MUCH_UNSEEN = 0.1

#: gives a file by its path in a line table, and a function that has lines of it
SourceOf = Callable[[str, str], Source]


def stalls_of(
    samples: Samples,
    cubins: Mapping[int, bytes],
    source_of: SourceOf,
    note: str,
    origins: Mapping[str, Iterable[SourceLine]] | None = None,
    ptx_of: Callable[[str], Iterable[str]] | None = None,
    name_of: Callable[[str], str] = str,
) -> Stalls:
    """Return what was sampled, by kernel and line.

    Args:
        samples: by cubin, function and instruction.
        cubins: those that are here, by CUPTI's number of them.
        source_of: what is known of a file.
        note: how it was run.
        origins: by kernel of `torch.compile` the lines of Python that it was made of.
        ptx_of: gives texts of PTX that a kernel may be made of, by its name.
        name_of: gives a kernel's name as it is shown.
    """
    files = _Files(source_of)
    tables: dict[int, LineTable] = {}
    for crc, cubin in cubins.items():
        # of one that is damaged, kernels are told as a whole, or without calls
        with suppress(BadCubin):
            tables[crc] = table = LineTable(cubin)
            if ptx_of is not None:
                for function in table.without_calls:
                    any(table.take_ptx(function, text) for text in ptx_of(function))
    parts: dict[str, list[_Part]] = defaultdict(list)
    for (crc, function), kernel in samples.kernels.items():
        parts[function].append(_Part(kernel, tables.get(crc)))
    longest = sorted(parts, key=lambda function: -_counts(parts[function]))
    kernels = [
        _kernel(
            files,
            function,
            name_of(function)[:_MOST_NAME],
            parts[function],
            (origins or {}).get(function, ()),
        )
        for function in longest[:_MOST_KERNELS]
    ]
    if not kernels:
        note = "No kernel was sampled: none ran, or all were short."
    if samples.unseen > _MUCH_UNSEEN * sum(kernel.samples for kernel in kernels):
        note = (
            f"{note} {samples.unseen:,} samples are of kernels that CUPTI does not "
            "know: the driver's own, or loaded while another profiler ran."
        )
    return Stalls(
        state="sampled" if kernels else "nothing",
        note=note,
        device=samples.device,
        period_cycles=samples.period_cycles,
        seconds=samples.seconds,
        dropped=samples.dropped,
        kernels=tuple(kernels),
        files=tuple(files.told),
    )


class _Files:
    def __init__(self, source_of: SourceOf) -> None:
        self._source_of = source_of
        self._sources: dict[str, Source] = {}
        self._places: dict[str, int] = {}
        self.told: list[SourceFile] = []
        self._room = _MOST_TEXTS

    def source(self, path: str, function: str) -> Source:
        if path not in self._sources:
            self._sources[path] = self._source_of(path, function)
        return self._sources[path]

    def place(self, path: str, function: str) -> int:
        """Return the position of a file that has samples."""
        if path not in self._places:
            source = self.source(path, function)
            text = source.text if len(source.text) <= _MOST_TEXT else ""
            text = text if len(text) <= self._room else ""
            self._room -= len(text)
            digest = hashlib.sha256(text.encode()).hexdigest() if text else ""
            self._places[path] = len(self.told)
            self.told.append(SourceFile(source.name[:_MOST_NAME], text, digest))
        return self._places[path]


@dataclass
class _Part:
    """What is of one cubin: a kernel may be compiled several times."""

    samples: KernelSamples
    table: LineTable | None

    def placed(self, function: str) -> Iterator[tuple[int, Counter[str]]]:
        """Give samples by instruction, those at a barrier by that of the barrier."""
        for offset, counted in self.samples.offsets.items():
            reasons = joined(counted)
            if self.table is not None and reasons[_BARRIER]:
                barrier = self.table.barrier_before(function, offset)
                yield barrier, Counter({_BARRIER: reasons.pop(_BARRIER)})
            if reasons:
                yield offset, reasons


def _counts(parts: Sequence[_Part]) -> int:
    return sum(of.total() for part in parts for of in part.samples.offsets.values())


def _kernel(
    files: _Files,
    function: str,
    name: str,
    parts: Sequence[_Part],
    origins: Iterable[SourceLine],
) -> KernelStalls:
    total: Counter[str] = Counter()
    lines: dict[SourceLine, Counter[str]] = defaultdict(Counter)
    language: Language = ""
    for part in parts:
        for offset, reasons in part.placed(function):
            total.update(reasons)
            calls = part.table.calls(function, offset) if part.table else ()
            if calls:
                lines[_own_line(files, function, calls)].update(reasons)
                language = files.source(calls[-1].path, function).language
    longest = sorted(lines.items(), key=lambda item: -item[1].total())[:_MOST_LINES]
    told = tuple(
        LineStalls(
            files.place(line.path, function),
            line.line,
            reasons.total(),
            _ordered(reasons),
        )
        for line, reasons in longest
    )
    places = list(dict.fromkeys(origins))[:_MOST_ORIGINS]
    return KernelStalls(
        name=name,
        launches=sum(len(part.samples.launches) for part in parts),
        samples=total.total(),
        reasons=_ordered(total),
        lines=told,
        unattributed=total.total() - sum(of.total() for of in lines.values()),
        language=language,
        origins=tuple(Place(files.place(at.path, function), at.line) for at in places),
    )


def _own_line(files: _Files, function: str, calls: Sequence[SourceLine]) -> SourceLine:
    """Return the innermost line that is no library's; in a library, the kernel's.

    Args:
        files: of the line table.
        function: the kernel.
        calls: the innermost first; the last is in the kernel itself.
    """
    for call in calls:
        if call.path == calls[-1].path:
            return call
        if not files.source(call.path, function).is_library:
            return call
    return calls[-1]


def joined(counted: Mapping[str, int]) -> Counter[str]:
    """Return samples by short reason; those without an issue are in their partners."""
    reasons: Counter[str] = Counter()
    for name, samples in counted.items():
        reason = name.removeprefix(_STALLED).removesuffix(_NOT_ISSUED)
        reasons[reason] = max(reasons[reason], samples)
    return reasons


def demangled(name: str) -> str:
    """Return a function's name as C++ has it, where the system can tell.

    A name of 300 characters may stand for gigabytes: give it none of a learner's.
    """
    if not name.startswith("_Z"):
        return name
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return name
    library.__cxa_demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    text = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    told = ctypes.string_at(text).decode(errors="replace")
    ctypes.CDLL(None).free(ctypes.c_void_p(text))
    return told


def _ordered(reasons: Counter[str]) -> dict[str, int]:
    return {reason: samples for reason, samples in reasons.most_common() if samples}
