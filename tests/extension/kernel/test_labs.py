"""Labs in a notebook: the list, the cell magic, the notebook itself, and the card."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import warpbook
from tests.programs import ROOT, wait_for
from warpbook.kernel.labs import lab_outputs
from warpbook.kernel.labs.lab_trace import report_of
from warpbook_labs.course import check_progress
from warpbook_labs.course.notebook import open_lab
from warpbook_labs.course.store import Store
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loader import load
from warpbook_labs.sandbox import warm

LAB = CATALOGUE / "kernels" / "vector_add"
REFERENCE = (LAB / "solutions" / "correct" / "one_element_each.cu").read_text()
TRACE = ROOT / "tests" / "data" / "traces" / "train_fp32.json.gz"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person who has done nothing yet, in a folder of their own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown_text(shell: Any) -> str:
    """What the newest output says."""
    return str(shell.display_pub.outputs[-1]["data"]["text/plain"])


def test_the_list_tells_by_track_what_can_be_done_here() -> None:
    listed = warpbook.labs.list()
    assert {lab.id for lab in listed} >= {"vector-add", "matmul"}
    text = repr(listed)
    assert text.index("kernels\n") < text.index("vector-add") < text.index("memory\n")
    html = listed._repr_mimebundle_()["text/html"]
    assert "a GPU for speed" in html and "speed is not graded" in html


def save(shell: Any, source: str) -> str:
    """Save a source without a check; return what is said of that."""
    shell.run_cell_magic("lab", "vector-add --no-check", source)
    # no warning: HTML would have its colour
    assert set(shell.display_pub.outputs[-1]["data"]) == {"text/plain"}
    return shown_text(shell)


def html(shown: Any) -> str:
    return str(shown._repr_mimebundle_()["text/html"])


def test_the_magic_keeps_a_source_and_puts_aside_what_another_wrote(
    shell: Any, here: Path
) -> None:
    said = save(shell, REFERENCE)
    kept = here / "vector-add" / "kernel.cu"
    assert kept.read_text() == f"// %%lab vector-add\n{REFERENCE}"
    lines = len(REFERENCE.splitlines())
    assert said == f"Saved in {kept}: {lines} lines. It is not checked."
    assert "What was there before" not in save(shell, REFERENCE + "// more\n")
    kept.write_text("// by another editor\n")
    assert "What was there before is in kernel.before-1.cu." in save(shell, REFERENCE)
    assert (kept.parent / "kernel.before-1.cu").read_text() == "// by another editor\n"
    shell.run_cell_magic("lab", "no-such-lab", "x")
    assert shown_text(shell).startswith("This cell is not saved. There is no lab")


def test_the_magic_checks_at_once_and_lines_are_those_of_the_cell(shell: Any) -> None:
    broken = REFERENCE.replace("sum;", "sun;")
    shell.run_cell_magic("lab", "vector-add", broken)
    assert shown_text(shell).startswith("✗ vector-add: compile error.")
    number = [at for at, line in enumerate(broken.splitlines(), 2) if "sun;" in line]
    card = shell.display_pub.outputs[-1]["data"]["text/html"]
    assert f"kernel.cu({number[0]}): error: identifier &quot;sun&quot;" in card
    shell.run_cell_magic("lab", "vector-add", REFERENCE)
    assert shown_text(shell) == "✓ vector-add: passed. All 3 cases passed."


def test_a_check_says_which_version_of_the_file_it_grades(
    shell: Any, here: Path
) -> None:
    lab = warpbook.labs.open("vector-add")
    assert "no %%lab cell of it has run in this kernel." in html(lab.check())
    save(shell, REFERENCE)
    first, again = html(lab.check()), html(lab.check())
    assert "Source: kernel.cu, as its cell wrote it at" in first
    assert "edits in a cell count once the cell is run" not in first
    assert "It is unchanged since the check at" in again
    assert "edits in a cell count once the cell is run" in again
    assert "lab.submit()" in again and "lab.submit()" not in html(lab.run(1))
    lab.source.write_text(REFERENCE + "// elsewhere\n")
    assert ", after its cell wrote it." in html(lab.check())


def test_what_holds_of_each_check_is_said_once(shell: Any) -> None:
    lab = warpbook.labs.open("vector-add")
    lab.source.write_text(REFERENCE)
    lab_outputs._said.clear()
    first, again = html(lab.check()), html(lab.check())
    for words in ("It was run in a process", "Speed is not graded without a GPU."):
        assert words in first and words not in again


def test_only_a_number_spends_a_hint(here: Path) -> None:
    lab = warpbook.labs.open("vector-add")
    for _ in range(2):
        assert repr(lab.hint()) == (
            "No hint is open; there are 4. `lab.hint(1)` opens hint 1."
        )
    assert "the next one is `lab.hint(1)`" in lab.hint(2).message
    assert repr(lab.hint(1)).startswith("Hint 1 of 4\n")
    shown = lab.hint()._repr_mimebundle_()["text/markdown"]
    assert shown.startswith("**Hint 1 of 4**\n\nHow many elements")
    # the same cell once more, and one without a number, spend nothing
    for shown in (lab.hint(1), lab.hint()):
        assert repr(shown).endswith("`lab.hint(2)` opens hint 2.")
    for number in (2, 3, 4):
        lab.hint(number)
    assert repr(lab.hint()).endswith("All 4 hints are open.")
    assert lab.hint(5).message == "There is no hint 5: all 4 are open."


def test_a_submission_is_counted_within_its_lab(here: Path) -> None:
    Store().add_submission("matmul", "// of another lab", 7)
    lab = warpbook.labs.open("vector-add")
    lab.source.write_text(REFERENCE)
    card = html(lab.submit())
    assert "Submission 1 of this lab (id 2). Practice grade" in card
    plan = warpbook.labs.open("roofline")._repr_html_()
    assert "cases" not in plan and "<dt>functions</dt>" in plan


def test_opening_again_keeps_ones_work_and_a_submission_passes(here: Path) -> None:
    lab = warpbook.labs.open("vector-add")
    assert "nothing was handed in" in lab.submit().message
    lab.source.write_text(REFERENCE)
    lab.notebook.unlink()
    again = warpbook.labs.open("vector-add")
    assert again.source.read_text() == REFERENCE
    assert "if (i >= n) return" in again.notebook.read_text()
    assert "once a submission of yours has passed" in again.solution().message
    done = again.submit()
    assert done.passed and repr(done).startswith("✓ vector-add: passed")
    card = html(done)
    for words in (
        "<summary>Reference solution (kernel.cu)</summary>",
        "<summary>Discussion</summary>",
        "<code>lab.next()</code></p>",
    ):
        assert words in card
    shown = again.solution()._repr_mimebundle_()
    assert "```cpp\n// launch: add_relu" in shown["text/markdown"]
    assert "What often goes wrong" in shown["text/plain"]
    following = again.next()
    assert following.id == "thread-and-block"
    beside = here / "thread-and-block" / "thread-and-block.ipynb"
    assert following.notebook == beside
    link = '<a href="thread-and-block/thread-and-block.ipynb">Open its notebook</a>'
    assert link in following._repr_html_()
    assert "1 submission, hints open: 0; best: " in again._repr_html_()
    assert "cases 1 to 3" in again.run(4).message
    assert "Nothing can be traced here" in again.trace().message
    assert "There is no lab" in repr(warpbook.labs.open("no-such-lab").check())


def ran(notebook: Path) -> tuple[Any, str]:
    """Run a notebook to its end; give it, and all that it says."""
    held = nbformat.read(notebook, as_version=4)
    folder = {"metadata": {"path": notebook.parent}}
    NotebookClient(held, timeout=120, kernel_name="python3", resources=folder).execute()
    outputs = [output for cell in held.cells for output in cell.get("outputs", ())]
    assert "error" not in {output.output_type for output in outputs}
    said = [output.get("data", {}).get("text/plain", "") for output in outputs]
    return held, "\n".join(said)


def test_a_notebook_runs_from_top_to_bottom_without_a_gpu(here: Path) -> None:
    opened = open_lab(load(LAB), here / "vector-add")
    saved = nbformat.read(opened.notebook, as_version=4)
    nbformat.validate(saved)
    assert all(not cell.get("outputs") for cell in saved.cells)
    _, said = ran(opened.notebook)
    assert "Saved in" in said and "No hint is open" in said
    assert re.search(r"vector-add: failed\. 0 of 3 cases", said)
    assert "This is the starter, as it came" in said


def test_without_what_labs_need_a_notebook_explains(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_lab(load(LAB), here / "vector-add")
    hidden = here / "hidden" / "sqlalchemy"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('hidden by the test')")
    monkeypatch.setenv("PYTHONPATH", str(hidden.parent))
    _, said = ran(opened.notebook)
    assert "This cell is not saved." in said
    assert said.count("pip install 'warpbook[labs]'") >= 5


def test_a_trace_becomes_a_report_of_the_dashboard(shell: Any, ingest: Any) -> None:
    profile = report_of(TRACE, "Lab vector-add", (1.0, 2.0), ("GPU-1",), ("a note",))
    (report,) = ingest.reports
    assert report.id == profile.report_id and report.title == "Lab vector-add"
    assert report.profile.kernels and report.notes == ("a note",)
    assert report.timeline_events and report.timeline_events > 0


def test_a_check_that_takes_long_says_how_far_it_is(
    shell: Any, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_progress, "_QUICK_S", 0.0)
    save(shell, REFERENCE)
    before = len(shell.display_pub.outputs)
    assert "passed" in repr(warpbook.labs.open("vector-add").check())
    lines = [
        output["data"]["text/plain"] for output in shell.display_pub.outputs[before:]
    ]
    assert re.fullmatch(r"Check(ing|ed 0 of 3 cases), \d+ s\.", lines[0])
    assert any(re.fullmatch(r"Checked 0 of 3 cases, \d+ s\.", line) for line in lines)
    assert any(line.startswith("Checked 3 of 3 cases, ") for line in lines)
    # and it goes when the card comes
    assert lines[-1] == ""


def test_who_keeps_a_source_finds_the_interpreter_warm(shell: Any, here: Path) -> None:
    warm.close()
    save(shell, REFERENCE)
    wait_for("a warm one", lambda: any(map(is_ready, warm._warm.values())) or None)


def is_ready(worker: Any) -> bool:
    return worker._process is not None and worker._process.poll() is None
