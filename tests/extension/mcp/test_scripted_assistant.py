"""An assistant without a model repairs cells by the tools alone, without a GPU."""

from pathlib import Path

from tests.assistant.advice import advice_for, cpu_cells, setup_of
from tests.assistant.rules import Assistant, repair
from tests.assistant.stand_in_page import StandInPage
from tests.server_process import TOKEN, server


def test_cells_of_the_exam_are_repaired(tmp_path: Path) -> None:
    repaired = {}
    with server(tmp_path) as running:
        assistant = Assistant(running.url, TOKEN)
        page = StandInPage(running.url, TOKEN, "exam.ipynb")
        for cell in cpu_cells():
            page.run(setup_of(cell, "cpu") + advice_for(cell))
            page.cells[cell.name] = cell.slow.strip()
            page.run(page.cells[cell.name], cell.name)
            name = cell.name
            repaired[name] = assistant.begin(
                lambda ask, name=name: repair(ask, "exam.ipynb", name)
            ).result(600)
            (step,) = repaired[name].steps
            assert step.change == cell.changes[0]
            # a busy machine may show no gain; what is shown is in the cell
            is_fast = page.cells[name] == cell.fast.strip()
            assert step.is_applied == is_fast, step.words
        page.close()
        assistant.close()
    assert repaired["rows_one_by_one"].steps[0].is_applied
    assert sum(one.steps[0].is_applied for one in repaired.values()) >= 2
