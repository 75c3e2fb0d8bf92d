"""Writes the documents' tables of changes, questions and trials from the techniques.

python tools/technique_tables.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "monitors"))

from warpbook_profiler.techniques.registry import OWN, experiments, questions

_ROWS = re.compile(r"^(\|[^\n]*\n)*")
DOCS = ROOT / "docs"
#: the head of each table, by the page that has it
HEADS = {
    DOCS / "reference" / "changes.md": "| name | what to change | its time |",
    DOCS / "how-to" / "use-the-checklist.md": "| item | `no`, where |",
    DOCS / "how-to" / "profile-a-cell.md": "| NAME | what is tried | not where |",
}


def pages() -> Iterator[tuple[Path, str]]:
    """Give each page with its table as the techniques have it."""
    rows = (
        [
            (", ".join(f"`{name}`" for name in kind.names), kind.what, kind.time)
            for technique in OWN
            for kind in technique.changes
        ],
        [(f"`{question.name}`", question.no_where) for question in questions()],
        [(f"`{kind.name}`", kind.what, kind.not_where) for kind in experiments()],
    )
    for (page, head), cells in zip(HEADS.items(), rows, strict=True):
        table = "".join(f"| {' | '.join(row)} |\n" for row in cells)
        before, head, after = page.read_text().partition(f"{head}\n")
        rule, _, rest = after.partition("\n")
        yield page, f"{before}{head}{rule}\n{table}{_ROWS.sub('', rest)}"


if __name__ == "__main__":
    for page, text in pages():
        page.write_text(text)
