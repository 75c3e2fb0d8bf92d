"""Three ways in on a dashboard without a report, by keyboard alone."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Locator, expect

from tests.e2e.lab import Lab
from tests.e2e.lab_page import LabPage

CELLS = ["import time", "time.sleep(0.01)  # slow"]


def test_three_doors_by_keyboard(
    page: LabPage, tmp_path: Path, screenshots: Path
) -> None:
    lab = Lab(tmp_path)
    notebook = lab.write_notebook("slow.ipynb", CELLS)
    keys = page.page.keyboard

    def press(button: Locator) -> None:
        button.focus()
        keys.press("Enter")

    with lab.serve() as url:
        page.open(url, notebook)
        doors = page.dashboard.get_by_label("Where to begin")
        dialog = page.page.locator(".jp-Dialog")
        # nothing has run: a script can be recorded all the same
        press(doors.get_by_role("button", name="Profile a cell"))
        expect(dialog).to_contain_text("No open notebook has run a cell")
        expect(dialog).to_contain_text("on_trace_ready=tensorboard_trace_handler")
        press(dialog.get_by_role("button", name="Copy"))
        expect(dialog.get_by_text("Copied")).to_be_visible()
        page.page.screenshot(path=screenshots / "door-script.png")
        keys.press("Escape")
        press(doors.get_by_role("button", name="Open a file"))
        expect(dialog.get_by_label("Path of a file")).to_be_focused()
        keys.press("Escape")

        page.page.screenshot(path=screenshots / "doors.png")
        press(doors.get_by_role("button", name="Quiz"))
        quiz = page.page.locator(".wb-quiz")
        expect(quiz.get_by_text("Question 1 of 21")).to_be_visible()
        # the browser has put the focus on the first choice
        keys.press("Space")
        expect(quiz.get_by_label("(z * w + y) * h + x")).not_to_be_checked()
        keys.press("ArrowDown")
        expect(quiz.get_by_label("(z * w + y) * h + x")).to_be_checked()
        press(quiz.get_by_role("button", name="Next"))
        expect(quiz).to_contain_text("1 answered")
        page.page.screenshot(path=screenshots / "quiz.png")
        page.reload()
        page.execute("warpbook:open-labs", quiz="placement")
        # it goes on where the person was
        expect(quiz.get_by_text("Question 2 of 21")).to_be_visible()
        press(quiz.get_by_role("button", name="Back to the labs"))
        labs = page.page.locator(".wb-labs")
        press(labs.get_by_role("button", name="Questions on the text A ladder"))
        for number in range(1, 4):
            expect(quiz.get_by_text(f"Question {number} of 4")).to_be_visible()
            keys.press("Space")
            press(quiz.get_by_role("button", name="Next"))
        press(quiz.get_by_label("I don’t know"))
        press(quiz.get_by_role("button", name="Finish"))
        expect(quiz.get_by_text("Checking answer")).to_be_visible()
        expect(quiz.get_by_text("of 4 answers are right.")).to_be_visible()
        expect(quiz.locator("li")).to_have_count(4)
        expect(quiz).to_contain_text("Not answered: the right choice is")
        page.page.screenshot(path=screenshots / "quiz-marked.png")

        page.execute("docmanager:open", path=notebook)
        page.run(0)
        page.run(1)
        page.execute("warpbook:dashboard")
        press(doors.get_by_role("button", name="Profile a cell"))
        expect(dialog.get_by_label("Cell", exact=True)).to_contain_text(
            "slow.ipynb: time.sleep"
        )
        press(dialog.get_by_role("button", name="Profile this cell"))
        expect(page.output(2)).to_contain_text("python-bound")
        assert page.cells()[2]["source"] == f"%%gpuprof\n{CELLS[1]}"
        # who has a report needs no door
        expect(doors).to_be_hidden()
