"""`%gpuwatch`: the receipt of a cell, from the server's readings, in the notebook."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.e2e.lab import Lab
from tests.e2e.lab_page import LabPage
from tests.programs import wait_for

ON = "%load_ext warpbook\n%gpuwatch on"
WORK = "import time; time.sleep(1.5)"
QUICK = 50


def test_every_cell_of_a_whole_run_has_its_line_and_the_next_run_compares(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    cells = [ON, WORK, *(f"x = {n}" for n in range(QUICK))]
    page.open(lab_url, lab.write_notebook("watched.ipynb", cells))
    page.run_all()

    def lines() -> list[str] | None:
        """The lines in the notebook as it would be saved, if all are there."""
        lines_shown = [
            "".join(output["data"]["text/plain"])
            for cell in page.cells()[1:]
            for output in cell["outputs"]
        ]
        if any("No receipts" in line for line in lines_shown):
            # a server that stood still for seconds is given up; once more, then
            page.run_all()
            return None
        return (
            lines_shown
            if len(lines_shown) == QUICK + 1 and " · " in lines_shown[0]
            else None
        )

    work, *quick = wait_for("all receipts", lines)
    took = work.partition(" · ")[0]
    assert re.fullmatch(r"\d+\.\d+ s", took) and float(took[:-2]) >= 1.5
    # on a busy machine some take long enough for more than their time
    others = [line for line in quick if " · " in line]
    assert len(others) < QUICK, others

    receipt = page.output(1).locator(".warpbook-receipt")
    expect(receipt).to_have_text(work)

    # nothing that the recording's GPUs did is the cell's
    def is_answered() -> bool | None:
        page.run(1)
        # of a server that stood still for seconds: once more, then
        expect(receipt).to_have_text(re.compile("REPLAY|No receipts"))
        return "No receipts" not in receipt.inner_text() or None

    wait_for("the next line", is_answered)
    expect(receipt).to_have_text(
        re.compile(r"\d+\.\d+ s · the GPU is a REPLAY: this cell's cost is unknown")
    )
