"""An assistant without a model repairs exam cells on a real GPU by the tools alone.

    pytest -m gpu -s tests/gpu/test_scripted_assistant.py

Server, kernel and tools are real; a stand-in for the page allows everything. Beside
what other GPU tests need: jupyter_server, ipykernel, websocket-client, requests and
`mcp>=2.3,<3`, in the Python that runs this. No browser and no JupyterLab.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.assistant.advice import setup_of
from tests.assistant.rules import Assistant, Repaired, repair
from tests.assistant.stand_in_page import StandInPage
from tests.gpu.exam.loading import Cell, load_cells
from tests.server_process import TOKEN, server

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(3600)]

#: cells with a change that gains, spread over all files
CELLS, WANTED = 20, 10
_NOTEBOOK = "exam.ipynb"


def chosen() -> list[Cell]:
    cells = [
        cell
        for cell in load_cells()
        if cell.changes
        and cell.judged != "no gain"
        and not cell.needs
        and not cell.own_kernel
        # what an edit of the cell can't be
        and cell.slow != cell.fast
    ]
    return [cells[at * len(cells) // CELLS] for at in range(CELLS)]


def test_half_of_the_cells_are_repaired(tmp_path: Path) -> None:
    rows: list[tuple[str, Repaired | None, str]] = []
    with server(tmp_path) as running:
        assistant = Assistant(running.url, TOKEN)
        page = StandInPage(running.url, TOKEN, _NOTEBOOK)
        for cell in chosen():
            try:
                page.run(setup_of(cell, "cuda"))
                page.cells[cell.name] = cell.slow.strip()
                page.run(cell.source, cell.name)
                repaired = assistant.begin(
                    lambda ask, name=cell.name: repair(ask, _NOTEBOOK, name)
                ).result(900)
                rows.append((cell.name, repaired, ""))
            except Exception as problem:  # noqa: BLE001 - the others are tried, too
                rows.append((cell.name, None, str(problem)[:100]))
            print(_row(*rows[-1]), flush=True)
        page.close()
        assistant.close()
    repairs = sum(one is not None and one.is_faster for _, one, _ in rows)
    print(f"\n{repairs} of {len(rows)} repaired; {WANTED} are wanted.")
    assert repairs >= WANTED


def _row(name: str, repaired: Repaired | None, problem: str) -> str:
    if repaired is None:
        return f"| {name} | | | {problem} |"
    applied = ", ".join(step.change for step in repaired.steps if step.is_applied)
    sentence = repaired.sentence.strip("«»")
    if not repaired.steps:
        sentence = "No change has an edit."
    elif not sentence:
        sentence = f"{repaired.steps[-1].change}: {repaired.steps[-1].words}"
    return f"| {name} | {repaired.verdict} | {applied or 'none'} | {sentence} |"
