"""`warpbook analyze --html`: a trace's report as one HTML file."""

from __future__ import annotations

from pathlib import Path

from warpbook.cli.errors import CommandError
from warpbook.reports.page import report_page
from warpbook_profiler.files.file_profile import FileProfile
from warpbook_profiler.techniques.registry import checklist


def write(read: FileProfile, trace: Path, target: Path) -> int:
    """Write the file and say where it is.

    Raises:
        CommandError: it can't be written.
    """
    answers = checklist(read.profile, read.run.source)
    page = report_page(read.profile, answers, trace.name, f"Trace file {trace.name}.")
    try:
        target.write_bytes(page.encode("utf-8", "replace"))
    except OSError as error:
        raise CommandError(
            f"The report can't be written to {target}: {error}."
        ) from None
    print(f"The report is in {target}.")
    return 0
