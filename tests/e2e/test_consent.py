"""An assistant asks to run and change cells: what the person sees, and decides."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, expect

from tests.assistant.advice import advice_for, cpu_cells, setup_of
from tests.assistant.rules import Ask, Assistant
from tests.e2e.lab import BASE_URL, Lab
from tests.e2e.lab_page import LabPage
from tests.programs import wait_for

#: markup and a mark's end, in what the dialog shows
HOSTILE = "x = 1  # </pre><img src=x onerror=alert(1)><b>Allowed</b>"
#: what a person would not see where it is cut off, or shown in another order
TAIL = f"{' ' * 100_000}  # \u202ehidden"


@pytest.fixture(scope="package")
def assistant(lab_url: str) -> Iterator[Assistant]:
    parts = urlsplit(lab_url)
    (token,) = parse_qs(parts.query)["token"]
    it = Assistant(f"{parts.scheme}://{parts.netloc}{BASE_URL}".rstrip("/"), token)
    yield it
    it.close()


def open_cells(page: LabPage, lab: Lab, lab_url: str, name: str, *cells: str) -> str:
    """Open a notebook, and run its cells."""
    notebook = lab.write_notebook(name, cells)
    page.open(lab_url, notebook)
    for index in range(len(cells)):
        page.run(index)
    return notebook


def dialog_of(page: LabPage) -> Locator:
    return page.page.locator(".jp-Dialog")


def test_a_person_decides_by_keyboard(
    page: LabPage, lab: Lab, lab_url: str, assistant: Assistant, screenshots: Path
) -> None:
    notebook = open_cells(page, lab, lab_url, "consent.ipynb", HOSTILE, "import time")
    dialog, keys = dialog_of(page), page.page.keyboard
    asked = assistant.ask("profile_cell", notebook=notebook, cell="c0")
    expect(dialog).to_contain_text("Profile a cell of consent.ipynb?")
    # as text: no markup of the cell's becomes the page's
    expect(dialog.locator("pre")).to_have_text(HOSTILE)
    expect(dialog.locator("img, b")).to_have_count(0)
    page.page.screenshot(path=screenshots / "consent.png")
    # a script's click is nobody's
    dialog.get_by_role("button", name="Allow once").evaluate("node => node.click()")
    expect(dialog).to_be_visible()
    # a key that was meant for the notebook refuses
    expect(dialog.get_by_role("button", name="Refuse")).to_be_focused()
    keys.press("Enter")
    answer = asked.result(60)
    assert answer["state"] == "refused" and "id" not in answer
    assert len(page.cells()) == 2
    # and it is not asked again at once
    assert assistant.ask("profile_cell", notebook=notebook).result(60)["state"] == (
        "refused"
    )
    expect(dialog).to_have_count(0)


def test_what_runs_is_what_was_shown(
    page: LabPage, lab: Lab, lab_url: str, assistant: Assistant
) -> None:
    notebook = open_cells(page, lab, lab_url, "shown.ipynb", f"1{TAIL}")
    dialog = dialog_of(page)
    asked = assistant.ask("profile_cell", notebook=notebook, cell="c0")
    # all of it, however long, and no letter that turns others round
    shown = dialog.locator("pre").text_content()
    assert shown == f"1{TAIL}".replace("\u202e", "\ufffd")
    # by an extension, another tab, or who shares the notebook
    page.page.evaluate(
        """() => [...window.jupyterapp.shell.widgets("main")]
            .find(each => each.content?.notebookConfig)
            .model.sharedModel.cells[0].setSource("open('changed', 'w')")"""
    )
    dialog.get_by_role("button", name="Allow once").click()
    answer = asked.result(60)
    assert answer["state"] == "failed"
    assert "edited meanwhile" in answer["what_happened"]
    assert len(page.cells()) == 1 and not (lab.notebooks / "changed").exists()


def test_allowed_once_is_asked_again_and_allowed_for_the_notebook_is_not(
    page: LabPage, lab: Lab, lab_url: str, assistant: Assistant
) -> None:
    slow = "total = 0\nfor number in range(200_000):\n    total += number % 7"
    notebook = open_cells(page, lab, lab_url, "allowed.ipynb", slow)
    dialog = dialog_of(page)
    for button in ("Allow once", "Allow for this notebook"):
        asked = assistant.ask("profile_cell", notebook=notebook, cell="c0")
        dialog.get_by_role("button", name=button).focus()
        page.page.keyboard.press("Enter")
        first = asked.result(120)
        assert first["state"] == "done", first
        assert first["verdict"]["kind"] == "python-bound"
    expect(dialog).to_have_count(0)
    again = assistant.ask("profile_cell", notebook=notebook, cell="c0").result(120)
    assert again["state"] == "done" and again["id"] != first["id"]
    page.wait_for_toast("Profile a cell of allowed.ipynb?")
    # one cell below is used again, and the cell itself is as it was
    assert [cell["source"] for cell in page.cells()] == [slow, f"%%gpuprof\n{slow}"]
    compared = assistant.ask("compare", before=first["id"], after=again["id"])
    assert compared.result(60)["before"]["id"] == first["id"]
    page.page.get_by_role("button", name="Ask me again").first.click()
    asked = assistant.ask("profile_cell", notebook=notebook, cell="c0")
    dialog.get_by_role("button", name="Refuse").click()
    assert asked.result(60)["state"] == "refused"


def test_no_page_no_notebook_and_a_page_that_goes(
    page: LabPage, lab: Lab, lab_url: str, assistant: Assistant
) -> None:
    notebook = open_cells(page, lab, lab_url, "gone.ipynb", "x = 1")
    # a cell that the open notebook does not have
    answer = assistant.ask("profile_cell", notebook=notebook, cell="c9").result(60)
    assert answer["state"] == "not open"
    assert "open it in JupyterLab" in answer["what_happened"]
    asked = assistant.ask("profile_cell", notebook=notebook, cell="c0")
    expect(dialog_of(page)).to_be_visible()
    page.page.goto("about:blank")
    answer = asked.result(60)
    assert answer["state"] == "page closed"
    # its kernel still runs, and nobody is there
    answer = assistant.ask("profile_cell", notebook=notebook, cell="c0").result(60)
    assert answer["state"] == "no page"
    page.open(lab_url, notebook)


def test_an_answer_that_nobody_waits_for_closes_the_dialog(
    page: LabPage, lab: Lab, lab_url: str, assistant: Assistant
) -> None:
    notebook = open_cells(page, lab, lab_url, "late.ipynb", "x = 1")

    is_shown = threading.Event()

    async def give_up(ask: Ask) -> None:
        call = asyncio.ensure_future(ask("profile_cell", notebook=notebook, cell="c0"))
        await asyncio.to_thread(is_shown.wait)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call

    given_up = assistant.begin(give_up)
    dialog = dialog_of(page)
    expect(dialog).to_be_visible()
    is_shown.set()
    given_up.result(60)
    # the question itself would be open for longer
    expect(dialog).to_have_count(0, timeout=20_000)


def test_a_kernel_at_work_is_told(
    page: LabPage, lab: Lab, lab_url: str, assistant: Assistant
) -> None:
    notebook = open_cells(
        page, lab, lab_url, "busy.ipynb", "import pathlib, time", "x = 1"
    )
    hold = (
        'pathlib.Path("begun").touch()\n'
        'while not pathlib.Path("go_on").exists(): time.sleep(0.1)'
    )
    page.page.evaluate(
        """code => [...window.jupyterapp.shell.widgets("main")]
            .find(each => each.content?.notebookConfig)
            .content.widgets[1].model.sharedModel.setSource(code)""",
        hold,
    )
    page.run(1, wait=False)
    begun = lab.notebooks / "begun"
    wait_for("a kernel at work", lambda: begun.exists() or None)
    page.wait_status("busy")
    answer = assistant.ask("profile_cell", notebook=notebook, cell="c0").result(60)
    assert answer["state"] == "busy"
    assert assistant.ask("gpus_now").result(60)["rows"]
    (lab.notebooks / "go_on").touch()
    page.wait_idle()


def test_an_edit_that_gains_replaces_the_cell_after_it_was_shown(
    page: LabPage, lab: Lab, lab_url: str, assistant: Assistant, screenshots: Path
) -> None:
    exam = next(cell for cell in cpu_cells() if cell.name == "rows_one_by_one")
    slow, fast = exam.slow.strip(), exam.fast.strip()
    setup = setup_of(exam, "cpu") + advice_for(exam)
    notebook = open_cells(page, lab, lab_url, "edited.ipynb", setup, slow)
    dialog, keys = dialog_of(page), page.page.keyboard
    once = dialog.get_by_role("button", name="Allow once")
    asked = assistant.ask("profile_cell", notebook=notebook, wait_s=300)
    once.click()
    report = asked.result(300)
    for answer in ("Keep the cell", "Replace the cell"):
        asked = assistant.ask(
            "apply_change", report=report["id"], change=exam.changes[0], wait_s=300
        )
        expect(dialog).to_contain_text(f"Apply the change {exam.changes[0]}")
        once.click()
        expect(dialog).to_contain_text("Replace the cell by its edited form?")
        expect(dialog).to_contain_text("Better: ")
        expect(dialog.locator("pre")).to_contain_text(f"+{fast}")
        page.page.screenshot(path=screenshots / "consent-edit.png")
        assert page.cells()[1]["source"] == slow
        dialog.get_by_role("button", name=answer).focus()
        keys.press("Enter")
        told = asked.result(300)
        assert told["state"] == "done"
        assert told["is_applied"] == (answer == "Replace the cell")
    sources = [cell["source"] for cell in page.cells()]
    assert sources[1] == fast and len(sources) == 3
    # the person takes it back
    page.page.locator(".jp-Notebook .jp-Cell").nth(1).locator(".cm-content").click()
    keys.press("Control+z")
    page.page.wait_for_function(
        """slow => [...window.jupyterapp.shell.widgets("main")]
            .find(each => each.content?.notebookConfig)
            .model.toJSON().cells[1].source === slow""",
        arg=slow,
    )
