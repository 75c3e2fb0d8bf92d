"""Cells of a lab's text that use its `given.py`, run where a learner runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.programs import python_path
from warpbook_labs.course.notebook import open_lab
from warpbook_labs.course.session import find


def ran(lab_id: str, folder: Path, cell: str, source: str = "") -> Any:
    """Open a lab, keep a source in it, and run a cell that prints JSON last.

    Args:
        lab_id: of the catalogue.
        folder: where it is opened.
        cell: Python that prints.
        source: the learner's; the reference if left out.
    """
    lab = find(lab_id)
    opened = open_lab(lab, folder)
    opened.source.write_text(source or lab.reference)
    ended = subprocess.run(
        [sys.executable, "-c", cell],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    *shown, data = ended.stdout.splitlines()
    print("\n".join(["", *shown]))  # noqa: T201 - a GPU's table is read by a person
    return json.loads(data)
