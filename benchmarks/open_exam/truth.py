"""Write truth.json of recorded exams: `python -m benchmarks.open_exam.truth`.

`--results EXAM.json --traces FOLDER` are what `python -m tests.gpu.exam` left by its
`--json EXAM.json --traces FOLDER`; small traces are kept in `traces`. Without both
the truth is that of the traces which the tests have (`tests/data/exam`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from os.path import relpath
from pathlib import Path
from typing import Any

import msgspec

from tests.gpu.exam.loading import FOLDER, load_cells
from tests.gpu.exam.results import read_results
from warpbook_monitors import toml_text

_HERE = Path(__file__).parent
_RECORDED = Path(__file__).parents[2] / "tests" / "data" / "exam"
_FIELDS = (
    *("kinds", "changes", "expert", "judged"),
    *("setup", "slow", "fast_setup", "fast"),
)
#: larger traces are recorded anew
_MOST_BYTES, _MOST_OF_ALL = 150_000, 3_500_000


def _recorded() -> Iterator[tuple[str, dict[str, Any]]]:
    for folder in sorted(_RECORDED.iterdir()):
        times = json.loads((folder / "times_ms.json").read_bytes())
        for name, measured in sorted(times.items()):
            path = folder / f"{name}.json.gz"
            yield f"{folder.name}/{name}", _trace(name, path, measured)


def _kept(
    results: Path, traces: Path, known: set[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Keep small traces of further cells while there is room, the unseen first."""
    measured, unseen = msgspec.to_builtins(read_results(results)), _unseen()
    paths = {path.name.removesuffix(".json.gz"): path for path in traces.iterdir()}
    sizes = sorted(
        (name not in unseen, path.stat().st_size, name)
        for name, path in paths.items()
        if measured.get(name, {}).get("before") and name not in known
    )
    room = _MOST_OF_ALL
    for _, size, name in sizes:
        if size > min(_MOST_BYTES, room):
            continue
        room -= size
        path = paths[name]
        gpu = measured[name]["gpu"].split()[1].lower()
        kept = _HERE / "traces" / gpu / path.name
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, kept)
        yield f"{gpu}/{name}", _trace(name, kept, measured[name])


def _unseen() -> set[str]:
    """Return names of cells by someone who had not seen warpbook's rules."""
    texts = (path.read_bytes() for path in FOLDER.glob("unseen_*.toml"))
    return {
        cell["name"]
        for text in texts
        for cell in toml_text.decode(text, dict[str, Any])["cell"]
    }


def _trace(name: str, path: Path, measured: dict[str, Any]) -> dict[str, Any]:
    times = {key: measured.get(key) for key in ("before", "fixed")}
    return {"cell": name, "file": relpath(path, _HERE), **times}


def main(arguments: list[str]) -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.open_exam.truth")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--traces", type=Path)
    options = parser.parse_args(arguments)
    traces = dict(_recorded())
    if options.results is not None and options.traces is not None:
        known = {trace["cell"] for trace in traces.values()}
        traces.update(_kept(options.results, options.traces, known))
    asked = {trace["cell"] for trace in traces.values()}
    unseen = _unseen()
    cells = {
        cell.name: {
            **{field: getattr(cell, field) for field in _FIELDS},
            "unseen": cell.name in unseen,
        }
        for cell in load_cells()
        if cell.name in asked
    }
    text = json.dumps({"cells": cells, "traces": traces}, indent=1)
    (_HERE / "truth.json").write_text(f"{text}\n")
    print(f"{len(cells)} cells, {len(traces)} traces")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
