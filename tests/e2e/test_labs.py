"""A lab from the launcher to the card, as a learner goes."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.e2e.lab import BASE_URL, Lab
from tests.e2e.lab_page import LabPage
from tests.e2e.test_accessible import AXE
from tests.programs import wait_for
from warpbook_labs.course.session import find
from warpbook_labs.lab.files import CATALOGUE

ATTACK = "<img src=x onerror=window.attacked=1>"
SOLUTION = (
    CATALOGUE / "kernels" / "vector_add" / "solutions" / "correct" / "grid_stride.cu"
)


def cell_of(page: LabPage, text: str) -> int:
    """The position of the cell that has this in its source."""
    (cell_number,) = [
        number
        for number, cell in enumerate(page.cells())
        if cell["cell_type"] == "code" and text in "".join(cell["source"])
    ]
    return cell_number


def write_source(page: LabPage, cell: int, source: str) -> None:
    page.page.evaluate(
        """([cell, source]) => {
            const panel = [...window.jupyterapp.shell.widgets("main")]
                .find(each => each.content?.notebookConfig);
            panel.content.widgets[cell].model.sharedModel.setSource(source);
        }""",
        [cell, source],
    )


def type_and_check(page: LabPage, source: int, text: str, check: int) -> None:
    """Write a submission and check it, by keyboard alone."""
    keyboard = page.page.keyboard
    page.page.locator(".jp-Notebook .jp-mod-active").focus()
    go_to(page, source)
    keyboard.press("Enter")
    keyboard.press("Control+a")
    keyboard.insert_text(text)
    keyboard.press("Control+Enter")
    go_to(page, check)
    keyboard.press("Control+Enter")


def go_to(page: LabPage, cell: int) -> None:
    active = """() => [...window.jupyterapp.shell.widgets("main")]
        .find(each => each.content?.notebookConfig).content.activeCellIndex"""
    while (at := page.page.evaluate(active)) != cell:
        page.page.keyboard.press("ArrowDown" if at < cell else "ArrowUp")


def test_a_text_is_opened_by_keyboard(page: LabPage, lab_url: str) -> None:
    url = urlsplit(lab_url)
    page.page.goto(f"{url.scheme}://{url.netloc}{BASE_URL}lab?reset&{url.query}")
    page.page.wait_for_function("() => window.jupyterapp?.restored.then(() => true)")
    page.execute("warpbook:open-labs")
    browser = page.page.locator(".wb-labs")
    expect(browser.locator("[data-lab='matmul']")).to_be_visible()
    # texts are below the labs, and open as they do
    browser.get_by_role("button", name="Open the text DGX").focus()
    page.page.keyboard.press("Enter")
    picture = page.page.locator(".jp-Notebook img[alt^='Eight GPUs of a DGX']")
    expect(picture).to_be_visible()
    there = "image => image.complete && image.naturalWidth > 0"
    wait_for("the picture", lambda: picture.evaluate(there) or None)


@pytest.mark.timeout(600)
def test_from_the_launcher_over_a_hostile_failure_to_a_card_that_passed(
    page: LabPage, lab_url: str, screenshots: Path
) -> None:
    url = urlsplit(lab_url)
    page.page.goto(f"{url.scheme}://{url.netloc}{BASE_URL}lab?reset&{url.query}")
    page.page.wait_for_function("() => window.jupyterapp?.restored.then(() => true)")
    page.execute("launcher:create")
    # it comes beside the first document, and moves the launcher's cards
    expect(page.dashboard).to_be_visible()
    page.page.locator(".jp-LauncherCard:visible", has_text="GPU Labs").click()
    browser = page.page.locator(".wb-labs")
    row = browser.locator("[data-lab='vector-add']")
    expect(row).to_contain_text("30 minutes · easy · CUDA C++")
    # said once, and not in each row
    expect(browser.get_by_text("speed is not graded")).to_have_count(1)
    expect(browser.locator(".wb-labs-next")).to_contain_text("Next: 1 ")
    browser.get_by_label("Track", exact=True).select_option("memory")
    expect(row).to_be_hidden()
    expect(browser.locator("[data-lab='tiled-transpose']")).to_be_visible()
    browser.get_by_label("Track", exact=True).select_option("")
    expect(row).to_be_visible()
    expect(row.locator(".wb-lab-state")).to_have_text("not begun")
    expect(browser.locator("[data-lab='tiled-transpose']")).to_contain_text(
        "after vector-add"
    )
    for theme in ("Light", "Dark"):
        page.set_theme(f"JupyterLab {theme}")
        page.page.wait_for_timeout(300)
        page.page.add_script_tag(path=AXE)
        report = page.page.evaluate(
            "() => axe.run({ include: ['.wb-labs'] }, { resultTypes: ['violations'] })"
        )
        serious = [
            (violation["id"], violation["nodes"][0]["html"][:200])
            for violation in report["violations"]
            if violation["impact"] in ("serious", "critical")
        ]
        assert serious == []
        page.page.screenshot(path=screenshots / f"labs-{theme.lower()}.png")
    page.set_theme("JupyterLab Light")

    # by keyboard alone
    browser.get_by_label("Track", exact=True).focus()
    page.tab_to(row.get_by_role("button", name="Open lab 2"), 20)
    page.page.keyboard.press("Enter")
    page.wait_idle()
    picture = page.page.locator(
        ".jp-Notebook img[alt='Neighbouring threads, neighbouring elements']"
    )
    expect(picture).to_be_visible()
    # its words are seen before it has come
    there = "image => image.complete && image.naturalWidth > 0"
    wait_for("the picture", lambda: picture.evaluate(there) or None)
    page.page.screenshot(path=screenshots / "lab-notebook.png")

    page.run(cell_of(page, "warpbook.labs.open"))
    page.run(cell_of(page, "warpbook.Monitor"))
    source = cell_of(page, "%%lab")
    page.page.wait_for_function(
        """cell => [...window.jupyterapp.shell.widgets("main")]
            .find(each => each.content?.notebookConfig)
            .content.widgets[cell].model.mimeType === 'text/x-c++src'""",
        arg=source,
    )
    hostile = SOLUTION.read_text().replace("float sum", f"// {ATTACK}\n float sun")
    write_source(page, source, f"%%lab vector-add\n{hostile}")
    page.run(source)
    expect(page.output(source)).to_contain_text("Saved in")
    # it is checked at once, and lines are those of the cell
    at_once = page.output(source)
    expect(at_once).to_contain_text("vector-add: compile error")
    lines = hostile.splitlines()
    number = next(at for at, line in enumerate(lines, 2) if "sum < 0" in line)
    expect(at_once).to_contain_text(f"kernel.cu({number}): error")
    check = cell_of(page, "lab.check()")
    page.run(check)
    card = page.output(check)
    expect(card).to_contain_text("vector-add: compile error")
    expect(card).to_contain_text("It is unchanged since the check at")
    expect(card).to_contain_text('identifier "sum" is undefined')

    # right but for one element, which says what it is
    wrong = SOLUTION.read_text().replace("i < n;", "i < n - 1;")
    wrong = wrong.replace("out[i] =", f"/* {ATTACK} */ out[i] =")
    write_source(page, source, f"%%lab vector-add\n{wrong}")
    # the cell is edited and not run: the file of before is graded, and a notice says so
    page.run(check)
    page.wait_for_toast("Edited and not run")
    page.run(source)
    page.run(check)
    expect(card).to_contain_text("vector-add: failed")
    expect(card).to_contain_text("first wrong")
    expect(card).to_contain_text("out[255]")
    expect(card).to_contain_text(ATTACK)
    page.scroll_to(check)
    page.page.screenshot(path=screenshots / "lab-card-failed.png")

    hint = cell_of(page, "lab.hint()")
    page.run(hint)
    expect(page.output(hint)).to_contain_text("No hint is open")
    write_source(page, hint, "lab.hint(1)")
    page.run(hint)
    expect(page.output(hint)).to_contain_text("Hint 1 of 4")

    type_and_check(page, source, f"%%lab vector-add\n{SOLUTION.read_text()}", check)
    expect(card).to_contain_text("✓ vector-add: passed")
    submit = cell_of(page, "lab.submit()")
    go_to(page, submit)
    page.page.keyboard.press("Control+Enter")
    handed_in = page.output(submit)
    expect(handed_in).to_contain_text("✓ vector-add: passed")
    expect(handed_in).to_contain_text("Submission 1. Practice grade")
    expect(handed_in).to_contain_text("Reference solution (kernel.cu)")
    expect(handed_in).to_contain_text("lab.next()")
    page.scroll_to(submit)
    page.page.screenshot(path=screenshots / "lab-card-passed.png")
    assert page.page.evaluate("() => window.attacked") is None

    page.execute("warpbook:open-labs")
    browser.get_by_role("button", name="Refresh").click()
    expect(row.locator(".wb-lab-state")).to_have_text("passed")
    row.locator("summary", has_text="Submissions").click()
    newest = row.locator(".wb-lab-card")
    expect(newest).to_contain_text("✓ vector-add: passed")
    expect(newest).to_contain_text("Submission 1. Practice grade")
    row.locator("summary", has_text="Hints").click()
    expect(row).to_contain_text("1 of 4 are open")
    expect(row).to_contain_text("the grid one block")
    row.locator("summary", has_text="Reference and discussion").click()
    expect(row.locator(".wb-lab-reference")).to_contain_text("bool is_aligned")
    page.page.screenshot(path=screenshots / "labs-after.png")
    page.page.evaluate(
        "() => window.jupyterapp.commands.execute('docmanager:save-all')"
    )


def test_broken_streams_are_shown_with_their_lines_and_a_timeline(
    page: LabPage, lab_url: str, lab: Lab, screenshots: Path
) -> None:
    cells = [
        "import warpbook\n%load_ext warpbook\n"
        'lab = warpbook.labs.open("fix-the-stream")',
        "%%lab fix-the-stream",
        "lab.check()",
        "lab.submit()",
    ]
    page.open(lab_url, lab.write_notebook("streams.ipynb", cells))
    page.run(0)
    words_by_file = {
        "side_does_not_wait.py": "which add of line",
        "events.py": "✓ fix-the-stream: passed",
    }
    sources = find("fix-the-stream")
    for name, words in words_by_file.items():
        source = (sources.wrong | sources.correct)[name]
        write_source(page, 1, f"%%lab fix-the-stream\n# {ATTACK}\n{source}")
        page.run(1)
        page.run(2)
        expect(page.output(2)).to_contain_text(words)
        page.page.screenshot(path=screenshots / f"lab-streams-{Path(name).stem}.png")
    page.run(3)
    handed_in = page.output(3)
    expect(handed_in).to_contain_text("Practice grade")
    expect(handed_in.get_by_role("img", name="What was done when")).to_be_visible()
    assert page.page.evaluate("() => window.attacked") is None
