"""Where the warps of kernels waited, in words, with their source around it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from warpbook_monitors import units
from warpbook_monitors.plain_text import bounded
from warpbook_profiler.model.cell_profile import KernelRow
from warpbook_profiler.model.report_view import (
    KernelStallsView,
    ReportTable,
    StallReasonView,
    StallsView,
    TableCell,
)
from warpbook_profiler.model.stalls import (
    SELECTED,
    KernelStalls,
    LineStalls,
    SourceFile,
    Stalls,
)
from warpbook_profiler.report.links import Links
from warpbook_profiler.stalls.reasons import leading, stall_reason

_MOST_KERNELS = 5
_MOST_REASONS = 4
#: of a kernel, those with most samples, each with its neighbours
_MOST_LINES = 12
_NEIGHBOURS = 2
#: of a kernel's samples; lines with less are counted together
_LEAST_SHARE = 0.01
#: of a kernel's samples; a reason with less needs no advice
_WORTH_ADVICE = 0.1
#: characters of a line, of a name, and of a file's name
_MOST_CODE, _MOST_NAME, _MOST_FILE = 160, 400, 80

_BASE = (
    "Shares are of a kernel's own samples. The kernel table has their times: sampled "
    "kernels take longer, and run one after the other."
)
_WITHOUT_LINES = (
    "It has no line table, so its reasons are for the whole kernel. nvcc and NVRTC "
    "write one with -lineinfo, Triton unless TRITON_DISABLE_LINE_INFO is set; kernels "
    "of PyTorch's and NVIDIA's libraries have none."
)


def stall_ids(stalls: Stalls | None, kernels: Sequence[KernelRow]) -> dict[str, str]:
    """Return the ids of the stalls that are shown, by name of the kernel."""
    if stalls is None:
        return {}
    shown = _longest(stalls.kernels, kernels)
    return {kernel.name: f"stalls-{at}" for at, kernel in enumerate(shown)}


def stalls_view(
    stalls: Stalls | None, kernels: Sequence[KernelRow], links: Links
) -> StallsView | None:
    """Word the stalls; None where nobody asked for them.

    Args:
        stalls: as they were sampled.
        kernels: of the profile, the one that takes most time first.
        links: of the report; the table of kernels is there.
    """
    if stalls is None:
        return None
    advised: set[str] = set()
    views = tuple(
        _kernel(kernel, f"stalls-{at}", stalls.files, links, advised)
        for at, kernel in enumerate(_longest(stalls.kernels, kernels))
    )
    return StallsView(_sentence(stalls), tuple(_notes(stalls, len(views))), views)


def _longest(
    sampled: Sequence[KernelStalls], kernels: Sequence[KernelRow]
) -> list[KernelStalls]:
    """Return those that are shown: by their time, then by their samples."""
    times_ns = {kernel.name: kernel.time_ns for kernel in kernels}
    return sorted(
        sampled, key=lambda one: (-times_ns.get(one.name, 0), -one.samples, one.name)
    )[:_MOST_KERNELS]


def _sentence(stalls: Stalls) -> str:
    if stalls.state != "sampled":
        return stalls.note or "Not sampled."
    samples = sum(kernel.samples for kernel in stalls.kernels)
    kernels = units.counted(len(stalls.kernels), "kernel")
    return (
        f"{samples:,} samples of {kernels}, one of each multiprocessor every "
        f"{stalls.period_cycles:,} cycles. {stalls.note}"
    ).rstrip()


def _notes(stalls: Stalls, shown: int) -> Iterator[str]:
    if stalls.state != "sampled":
        return
    yield _BASE
    if stalls.dropped:
        yield (
            f"{stalls.dropped:,} samples were dropped as the buffer was full; shares "
            "are of the others."
        )
    more = len(stalls.kernels) - shown
    if more > 0:
        kernels = units.counted(more, "sampled kernel")
        yield f"Not shown: {kernels} with less time."


def _kernel(
    kernel: KernelStalls,
    id_: str,
    files: Sequence[SourceFile],
    links: Links,
    advised: set[str],
) -> KernelStallsView:
    """Word one kernel; advice that was given is left out, and new one is noted."""
    reasons = tuple(_reasons(kernel, advised))
    most = leading(kernel.reasons)
    words = "" if most is None else f"; a warp mostly {stall_reason(most).words}"
    launches = units.counted(kernel.launches, "launch", "launches")
    lines = [line for line in kernel.lines if line.file < len(files)]
    lines.sort(key=lambda line: (-line.samples, line.file, line.line))
    shown = [
        line
        for line in lines[:_MOST_LINES]
        if line.samples >= _LEAST_SHARE * kernel.samples
    ]
    return KernelStallsView(
        id_,
        bounded(kernel.name, _MOST_NAME),
        f"{kernel.samples:,} samples of {launches}{words}.",
        reasons,
        tuple(
            _source(kernel, files[file], [one for one in shown if one.file == file])
            for file in dict.fromkeys(line.file for line in shown)
        ),
        tuple(_kernel_notes(kernel, files, shown)),
        links.rows_of(id_),
    )


def _reasons(kernel: KernelStalls, advised: set[str]) -> Iterator[StallReasonView]:
    ordered = Counter(kernel.reasons).most_common()
    rest = sum(samples for _, samples in ordered[_MOST_REASONS:])
    ratios = [samples / max(kernel.samples, 1) for _, samples in ordered]
    ratios = [*ratios[:_MOST_REASONS], rest / max(kernel.samples, 1)]
    shares = [units.share(ratio) for ratio in units.parts_of_one(ratios)]
    named = zip(ordered[:_MOST_REASONS], ratios, shares, strict=False)
    for (name, _), ratio, share in named:
        reason = stall_reason(name)
        is_new = ratio >= _WORTH_ADVICE and name not in advised
        if is_new:
            advised.add(name)
        yield StallReasonView(
            reason.words,
            share,
            ratio,
            reason.advice if is_new else "",
            reason.lab if ratio >= _WORTH_ADVICE else None,
        )
    if rest:
        yield StallReasonView("other reasons", shares[-1], ratios[-1], "", None)


def _kernel_notes(
    kernel: KernelStalls, files: Sequence[SourceFile], shown: Sequence[LineStalls]
) -> Iterator[str]:
    if kernel.origins:
        yield f"torch.compile made it of {_places(kernel, files)}."
    if not kernel.lines:
        yield _WITHOUT_LINES
        return
    rest = kernel.samples - kernel.unattributed - sum(one.samples for one in shown)
    if rest:
        yield f"Other lines: {_share(rest, kernel)} of the samples."
    if kernel.unattributed:
        yield (
            f"Without a line: {_share(kernel.unattributed, kernel)}, of instructions "
            "that the compiler added."
        )


def _places(kernel: KernelStalls, files: Sequence[SourceFile]) -> str:
    of_file: dict[int, set[int]] = {}
    for place in kernel.origins:
        of_file.setdefault(place.file, set()).add(place.line)
    return "; ".join(
        f"{bounded(files[file].name, _MOST_FILE)}:"
        f"{', '.join(map(str, sorted(lines)[:_MOST_LINES]))}"
        for file, lines in sorted(of_file.items())
        if file < len(files)
    )


def _share(samples: int, kernel: KernelStalls) -> str:
    return units.share(samples / max(kernel.samples, 1))


def _source(
    kernel: KernelStalls, file: SourceFile, sampled: Sequence[LineStalls]
) -> ReportTable:
    """Show the lines around those that were sampled, in their order."""
    texts = file.text.split("\n")
    of_line = {one.line: one for one in sampled}
    near = {
        number
        for line in of_line
        for number in range(line - _NEIGHBOURS, line + _NEIGHBOURS + 1)
        if 0 < number <= len(texts)
    }
    numbers = sorted(near | of_line.keys())
    codes = [_code(texts, number) for number in numbers]
    codes = textwrap.dedent("\n".join(codes)).split("\n")
    most = max((one.samples for one in kernel.lines), default=0)
    rows, last = [], None
    for number, code in zip(numbers, codes, strict=True):
        if last is not None and number > last + 1:
            rows.append((TableCell("  ⋯"), *(TableCell(""),) * 3))
        last = number
        line = TableCell(f"{number:4}  {code}", number)
        rows.append((line, *_figures(of_line.get(number), kernel, most)))
    name = bounded(file.name, _MOST_FILE)
    title = name if file.text else f"{name}, whose source is not here"
    header = ("Samples", "Share", "Waits for")
    return ReportTable(title, "Line", header, tuple(rows), is_code=True)


def _code(texts: Sequence[str], number: int) -> str:
    if not 0 < number <= len(texts):
        return ""
    return bounded(texts[number - 1][:_MOST_CODE].expandtabs(4).rstrip(), _MOST_CODE)


def _figures(
    line: LineStalls | None, kernel: KernelStalls, most: int
) -> tuple[TableCell, TableCell, TableCell]:
    if line is None:
        return TableCell(""), TableCell(""), TableCell("")
    return (
        TableCell(f"{line.samples:,}", line.samples, line.samples / max(most, 1)),
        TableCell(_share(line.samples, kernel), line.samples),
        TableCell(_most(line.reasons, kernel)),
    )


def _most(reasons: Mapping[str, int], kernel: KernelStalls) -> str:
    name = leading(reasons)
    if name is None:
        return stall_reason(SELECTED).short
    return f"{stall_reason(name).short} ({_share(reasons[name], kernel)})"
