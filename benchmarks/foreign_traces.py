"""What is said of traces that others recorded: a table over folders of them.

`python -m benchmarks.foreign_traces FOLDER...` reads every `.json` and `.json.gz` below
the folders and prints for each what `warpbook analyze` makes of it, then the counts:
how many are read, refused and left "unknown". Nothing is fetched, and nothing of the
traces is kept. `--write` writes docs/evidence/foreign-traces.md.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import describe_machine
from warpbook_monitors import units
from warpbook_monitors.plain_text import printable, shortened
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.errors import TraceFileError
from warpbook_profiler.report.report import TraceReport, report

REPORT = Path(__file__).parents[1] / "docs" / "evidence" / "foreign-traces.md"


@dataclass(frozen=True)
class Row:
    """One trace and what is said of it."""

    name: str
    trace_report: TraceReport | None
    refusal: str
    took_s: float

    @property
    def holds_kernels(self) -> bool:
        """Tell whether a verdict can be expected."""
        return self.trace_report is not None and self.trace_report.metrics.kernels > 0

    @property
    def kind(self) -> str:
        """The verdict in one word."""
        return self.trace_report.verdict.kind if self.trace_report else "no trace"


def rows(folders: Sequence[Path]) -> Iterator[Row]:
    """Read every different trace once."""
    seen = set()
    for folder in folders:
        for path in sorted(folder.rglob("*.json*")):
            digest = hashlib.sha256(path.read_bytes()).digest()
            if digest in seen or not path.is_file():
                continue
            seen.add(digest)
            yield _row(path, str(path.relative_to(folder)))


def _row(path: Path, name: str) -> Row:
    begun = time.perf_counter()
    trace_report, refusal = None, ""
    try:
        trace_report = report(*read_chrome_trace(str(path)))
    except TraceFileError as error:
        refusal = str(error).rpartition(": ")[2]
    return Row(printable(name), trace_report, refusal, time.perf_counter() - begun)


def table(all_rows: Sequence[Row]) -> Iterator[str]:
    """Write the table in Markdown."""
    yield "| trace | GPU | kernels | verdict | set-up | why |"
    yield "| --- | --- | ---: | --- | ---: | --- |"
    for row in all_rows:
        trace, name = row.trace_report, shortened(row.name, 70)
        if trace is None:
            yield f"| `{name}` | | | refused | | {row.refusal} |"
            continue
        sentence = trace.verdict.sentence.partition(". ")[0].replace("|", "/")
        set_up = "" if trace.set_up is None else units.share(trace.set_up.share)
        yield (
            f"| `{name}` | {printable(trace.gpu or '')} | {trace.metrics.kernels:,} "
            f"| {row.kind} | {set_up} | {shortened(printable(sentence), 150)} |"
        )


def counts(all_rows: Sequence[Row]) -> Iterator[str]:
    """Write how many of what."""
    judged = [row for row in all_rows if row.holds_kernels]
    unknown = [row for row in judged if row.kind == "unknown"]
    yield f"- {len(all_rows)} different files, {len(judged)} of them hold kernels."
    yield (
        f'- Of these, {len(unknown)} end as "unknown" '
        f"({units.share(len(unknown) / max(len(judged), 1))})."
    )
    kinds = Counter(row.kind for row in judged)
    yield "- Verdicts: " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    cut = sum(1 for row in judged if row.trace_report and row.trace_report.set_up)
    yield f"- Set-up is left out of {cut}."
    slowest = max((row.took_s for row in all_rows), default=0.0)
    yield f"- The slowest takes {slowest:.1f} s on 2 shared cores."


def main() -> None:
    """Print the table, and write it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    all_rows = list(rows(options.folders))
    lines = [*counts(all_rows), "", *table(all_rows)]
    print("\n".join(lines))
    if options.write:
        head = REPORT.read_text().partition("## Counts")[0] if REPORT.exists() else ""
        stamp = describe_machine()
        REPORT.write_text("\n".join([f"{head}## Counts", "", stamp, "", *lines, ""]))


if __name__ == "__main__":
    main()
