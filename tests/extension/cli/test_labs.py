"""`warpbook labs`: from the list to the card, by the real command."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import signal
import time
from pathlib import Path

import pytest

from warpbook.cli.labs import actions
from warpbook_labs.course import check_progress
from warpbook_labs.course.store import Store
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.sandbox.progress import Steps

LAB = CATALOGUE / "kernels" / "vector_add"

RIGHT = LAB / "solutions" / "correct" / "one_element_each.cu"


@pytest.fixture
def reference(tmp_path: Path) -> str:
    shutil.copy(RIGHT, tmp_path / "mine.cu")
    return "mine.cu"


def test_a_plans_text_tells_its_functions_and_arguments(
    warpbook, tmp_path: Path
) -> None:
    opened = warpbook("labs", "open", "optimizer-offload")
    assert opened.returncode == 0, opened.stderr
    text = (tmp_path / "optimizer-offload" / "text.md").read_text()
    assert "**`step_s(machine, layers, plan) -> float`**" in text
    assert "`params` and `backward_s`" in text


@pytest.mark.parametrize(
    ("lab", "is_run_given"),
    [
        ("custom-operator", True),
        ("parallelism-by-hand", True),
        ("mixed-precision", False),
    ],
)
def test_a_text_asks_for_a_run_only_where_the_grader_calls_it(
    warpbook, tmp_path: Path, lab: str, is_run_given: bool
) -> None:
    assert warpbook("labs", "open", lab).returncode == 0
    text = (tmp_path / lab / "text.md").read_text()
    assert ("to `run` of given.py" in text) is is_run_given
    assert ("`run(state, " in text) is not is_run_given


def test_what_to_do_next_is_of_the_file_that_was_checked(
    warpbook, tmp_path: Path, reference: str
) -> None:
    passed = warpbook("labs", "check", "vector-add", reference)
    assert f"`warpbook labs submit vector-add {reference}`" in passed.stdout

    starter = CATALOGUE / "training" / "optimizer_offload" / "starter.py"
    shutil.copy(starter, tmp_path / "my answers.py")
    failed = warpbook("labs", "check", "optimizer-offload", "my answers.py")
    assert failed.returncode == 1
    _, command = failed.stdout.split("(whole: warpbook ")
    whole = warpbook(*shlex.split(command.partition(")")[0]))
    assert whole.returncode == 1 and "step_s(" in whole.stdout


def test_from_the_list_over_open_and_check_to_a_submission_that_passed(
    warpbook, tmp_path: Path, home: Path
) -> None:
    first = warpbook("labs")
    assert first.returncode == 0, first.stderr
    assert "vector-add" in first.stdout and "Results are checked here" in first.stdout
    opened = warpbook("labs", "open", "vector-add")
    assert opened.returncode == 0 and "vector-add/kernel.cu" in opened.stdout
    mine = tmp_path / "vector-add" / "kernel.cu"
    assert mine.read_text() == (LAB / "starter.cu").read_text()
    assert (mine.parent / "coalesced.svg").is_file()
    assert "## What is asked" in (mine.parent / "text.md").read_text()

    failed = warpbook("labs", "check", "vector-add")
    assert failed.returncode == 1
    for words in (
        "vector-add: failed. 0 of 3 cases passed.",
        "✗ failed  shown  one full block",
        "first wrong   out[",
        "expected      0",
        "Most work by line",
        "out[i] = x[i] + y[i];",
        "Speed is not graded without a GPU.",
    ):
        assert words in failed.stdout

    mine.write_text((RIGHT).read_text())
    again = warpbook("labs", "open", "vector-add")
    assert again.returncode == 0
    assert mine.read_text() == (RIGHT).read_text()
    early = warpbook("labs", "solution", "vector-add")
    assert early.returncode == 2
    assert "once a submission of yours has passed" in early.stderr
    passed = warpbook("labs", "submit", "vector-add")
    assert passed.returncode == 0
    assert "`warpbook labs solution vector-add`" in passed.stdout
    assert "minutes: `warpbook labs open thread-and-block`" in passed.stdout
    solution = warpbook("labs", "solution", "vector-add")
    assert solution.returncode == 0
    assert "bool is_aligned" in solution.stdout and "\nDiscussion\n" in solution.stdout
    assert "Submission 1. Practice grade (graded on this machine)." in passed.stdout
    row = next(
        line for line in warpbook("labs", "list").stdout.splitlines() if "r-add" in line
    )
    assert row.endswith(" passed")
    listed = warpbook("labs", "list").stdout
    assert listed.endswith("warpbook labs open thread-and-block\n")
    assert (home / ".local" / "share" / "warpbook" / "labs.db").is_file()


def test_a_finding_and_a_compilers_error_quote_the_learners_line(
    warpbook, tmp_path: Path
) -> None:
    shutil.copy(LAB / "solutions" / "wrong" / "no_bound.cu", tmp_path)
    checked_lab = warpbook("labs", "check", "vector-add", "no_bound.cu")
    assert checked_lab.returncode == 1
    assert "out-of-bounds access: thread (232, 0, 0)" in checked_lab.stdout
    assert "5 |     float sum = x[i] + y[i];" in checked_lab.stdout
    source = (RIGHT).read_text()
    (tmp_path / "broken.cu").write_text(source.replace("sum;", "sun;"))
    broken = warpbook("labs", "check", "vector-add", "broken.cu")
    assert broken.returncode == 1
    assert "compile error. It does not compile." in broken.stdout
    assert 'kernel.cu(7): error: identifier "sun" is undefined' in broken.stdout
    (tmp_path / "rule.cu").write_text(source.replace("(n, 256)", "(rows, 256)"))
    rule = warpbook("labs", "check", "vector-add", "rule.cu")
    assert rule.returncode == 1
    assert "1 | // launch: add_relu<<<ceil_div(rows, 256)" in rule.stdout


def test_json_of_a_submission_and_of_the_list_are_as_documented(
    warpbook, reference: str
) -> None:
    done = warpbook("labs", "submit", "vector-add", reference, "--json")
    assert done.returncode == 0
    card = json.loads(done.stdout)
    assert set(card) == {"result", "passed", "grading", "submission", "number"}
    assert (card["passed"], card["grading"], card["submission"]) == (
        True,
        "self-graded",
        1,
    )
    result = card["result"]
    assert (result["status"], result["right"], result["of"]) == ("passed", 14, 14)
    hidden = [case for case in result["cases"] if case["is_hidden"]]
    assert hidden and all(case["sizes"] is None for case in hidden)
    assert "seed" not in done.stdout
    assert result["cases"][0]["lines"]["6"]["global_sectors"] == 64
    listed = json.loads(warpbook("labs", "list", "--json").stdout)
    assert listed["compiler"] and listed["gpus"] == 0 and listed["remedy"] == ""
    [lab] = [entry for entry in listed["labs"] if entry["id"] == "vector-add"]
    assert lab["progress"]["best"] == {
        "submission": 1,
        "passed": True,
        "right": 14,
        "of": 14,
    }


def test_hints_open_one_by_one_and_then_all_again(warpbook) -> None:
    answers = [
        json.loads(warpbook("labs", "hint", "vector-add", "--json").stdout)
        for _ in range(5)
    ]
    assert [answer["opened"] for answer in answers] == [1, 2, 3, 4, 4]
    assert [len(answer["hints"]) for answer in answers] == [1, 1, 1, 1, 4]
    assert warpbook("labs", "hint", "vector-add").stdout.startswith("Hint 1 of 4\n")


def test_a_new_lab_is_valid_until_a_wrong_solution_is_right(
    warpbook, tmp_path: Path
) -> None:
    assert warpbook("labs", "new", "my-lab").returncode == 0
    valid = warpbook("labs", "validate", "my_lab")
    assert valid.returncode == 0, valid.stdout + valid.stderr
    assert valid.stdout.count("\nok ") + valid.stdout.startswith("ok ") == 6
    assert "out of bounds: thread (232, 0, 0)" in valid.stdout
    lab = tmp_path / "my_lab"
    shutil.copy(lab / "reference.cu", lab / "solutions" / "wrong" / "right.cu")
    (lab / "solutions" / "correct" / "odd.cu").write_text(
        (lab / "reference.cu").read_text().replace("factor *", "factor +")
    )
    validated = warpbook("labs", "validate", "my_lab", "--json")
    assert validated.returncode == 1
    [of_lab] = json.loads(validated.stdout)["labs"]
    off = {
        verdict["file"]: verdict["reason"]
        for verdict in of_lab["verdicts"]
        if not verdict["ok"]
    }
    assert set(off) == {"solutions/wrong/right.cu", "solutions/correct/odd.cu"}
    assert "it passes" in off["solutions/wrong/right.cu"]
    (lab / "hints.md").unlink()
    bad = warpbook("labs", "validate", "my_lab")
    assert bad.returncode == 2 and "hints.md: this file is missing" in bad.stdout


def test_who_passes_is_told_until_the_author_says_why_it_may(
    warpbook, tmp_path: Path
) -> None:
    assert warpbook("labs", "new", "my-lab", "--language", "plan").returncode == 0
    lab = tmp_path / "my_lab"
    cases = (lab / "cases.py").read_text()
    # what asks for no full blocks can't tell the usual mistake at their end
    (lab / "cases.py").write_text(
        cases.replace("threads * rng.randint(1, 99), threads", "1, threads")
    )
    (lab / "reference.py").write_text(
        "def blocks(n, threads):\n    return n // threads + (n % threads > 0)\n"
    )
    told = warpbook("labs", "validate", "--mutants", "my_lab")
    survivor = "return n // threads + (n % threads >= 0)"
    assert f"-> {survivor} (comparison)" in told.stdout, told.stdout + told.stderr
    assert told.returncode == 1 and "0 equivalent" in told.stdout
    # a mutant that its author knows as right is not graded; one that is none is named
    known = (
        'line = "return n // threads + (n % threads > 0)"\nreason = "for the test"\n'
    )
    file = lab / "mutants.toml"
    file.write_text(f'[[equivalent]]\n{known}becomes = ["{survivor}"]\n')
    assert survivor not in warpbook("labs", "validate", "--mutants", "my_lab").stdout
    listed = ("labs", "validate", "--mutants", "my_lab", "--equivalent", "2")
    held = warpbook(*listed)
    assert held.returncode == 0, held.stdout + held.stderr
    assert "1 of 1 mutants that are listed as right pass" in held.stdout
    # and one that is listed as right, and is not, is named with what it fails by
    wrong = "return n // threads - (n % threads > 0)"
    file.write_text(f'[[equivalent]]\n{known}becomes = ["{wrong}"]\n')
    refuted = warpbook(*listed)
    assert (
        refuted.returncode == 1 and f"-> {wrong} (arithmetic): seed" in refuted.stdout
    )
    without = warpbook("labs", "validate", "my_lab", "--equivalent", "2")
    assert without.returncode == 2 and "add --mutants" in without.stderr
    file.write_text(f'[[equivalent]]\n{known}becomes = ["return n"]\n')
    none = warpbook("labs", "validate", "--mutants", "my_lab", "--sample", "-1")
    assert none.returncode == 2 and "1 or more" in none.stderr
    bad = warpbook("labs", "validate", "--mutants", "my_lab")
    assert bad.returncode == 2 and "is `return n`. Take it out" in bad.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "no-such-lab"], "no lab `no-such-lab`"),
        (["check", "vector-add"], "`warpbook labs open vector-add` puts it there"),
        (["check", "vector-add", "nothing.cu"], "nothing.cu: No such file"),
        (["submit", "vector-add", "."], "not a regular file"),
        (["submit", "vector-add", "binary.cu"], "binary.cu: The source has a NUL"),
        (["submit", "vector-add", "huge.cu"], "huge.cu: it has more than 200,000"),
        (["new", "Not An Id"], "is no id"),
        (["new", "vector-add"], "The catalogue has a lab `vector-add`"),
        (["trace", "vector-add", "right.cu"], "Nothing can be traced here: "),
    ],
)
def test_what_cant_be_checked_is_told_with_status_2(
    warpbook, tmp_path: Path, arguments: list[str], words: str
) -> None:
    shutil.copy(RIGHT, tmp_path / "right.cu")
    (tmp_path / "binary.cu").write_bytes(b"\x7fELF\0\xff\xfe")
    (tmp_path / "huge.cu").write_bytes(b"/" * 200_001)
    done = warpbook("labs", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr and "Traceback" not in done.stderr
    as_json = warpbook("labs", *arguments, "--json")
    assert as_json.returncode == 2 and words in json.loads(as_json.stdout)["error"]


def test_what_is_kept_of_a_lab_in_a_folder_is_graded_again_by_its_folder(
    warpbook,
) -> None:
    assert warpbook("labs", "new", "row-sums").returncode == 0
    for _ in range(2):
        done = warpbook("labs", "submit", "row_sums", "row_sums/reference.cu")
        assert done.returncode == 0, done.stderr
    again = warpbook("labs", "regrade", "row_sums")
    assert again.returncode == 0 and again.stdout.count("row-sums: passed") == 2
    one = warpbook("labs", "regrade", "row_sums", "2", "--json")
    assert [load["submission"] for load in json.loads(one.stdout)["cards"]] == [2]
    alone = warpbook("labs", "regrade", "2")
    assert alone.returncode == 2
    assert "Name its folder: warpbook labs regrade FOLDER 2" in alone.stderr
    other = warpbook("labs", "regrade", "vector-add", "2")
    assert other.returncode == 2 and "no submission 2 of vector-add" in other.stderr


@pytest.mark.parametrize("is_json", [False, True])
def test_a_submission_that_is_interrupted_says_how_it_is_graded(
    warpbook, start, home: Path, tmp_path: Path, is_json: bool
) -> None:
    warpbook("labs", "new", "row-sums")
    folder = tmp_path / "row_sums"
    cases = folder / "cases.py"
    quick = cases.read_text()
    waits = "    import time; time.sleep(60)\n"
    before = '    n = sizes["n"]\n'
    cases.write_text(quick.replace(before, waits + before))
    source = str(folder / "reference.cu")
    more = ["--json"] if is_json else []
    process = start("labs", "submit", str(folder), source, *more)
    store = Store(home / ".local" / "share" / "warpbook" / "labs.db")
    while not store.submissions("row-sums"):
        assert process.poll() is None
        time.sleep(0.05)
    # while it is graded: the moment at which it was kept is another matter
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=120)
    again = f"labs regrade {folder} 1"
    words = f"Submission 1 is recorded. Grade it with: warpbook {again}"
    assert process.returncode == 130
    if is_json:
        assert json.loads(printed) == {"error": words, "submission": 1}
    else:
        assert (printed, said) == ("", f"warpbook: {words}\n")
    cases.write_text(quick)
    assert warpbook(*again.split()).returncode == 0


def test_a_damaged_store_is_told_and_left_as_it_is(
    warpbook, home: Path, reference: str
) -> None:
    path = home / ".local" / "share" / "warpbook" / "labs.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database at all" * 100)
    done = warpbook("labs", "submit", "vector-add", reference)
    assert done.returncode == 2 and "labs.db: the file is damaged" in done.stderr
    assert path.read_bytes() == b"not a database at all" * 100


def test_without_what_labs_need_it_says_how_to_install_it(
    warpbook, tmp_path: Path, reference: str
) -> None:
    # found before the real ones
    folder = tmp_path / "broken"
    (folder / "sqlalchemy").mkdir(parents=True)
    (folder / "sqlalchemy" / "__init__.py").write_text("raise ImportError('not here')")
    done = warpbook("labs", "check", "vector-add", reference, PYTHONPATH=str(folder))
    assert done.returncode == 2 and "pip install 'warpbook[labs]'" in done.stderr
    shutil.rmtree(folder / "sqlalchemy")
    (folder / "cuda" / "bindings").mkdir(parents=True)
    for package in ("cuda", "cuda/bindings"):
        (folder / package / "__init__.py").touch()
    (folder / "cuda/bindings/nvrtc.py").write_text("raise ImportError('not here')")
    listed = warpbook("labs", PYTHONPATH=str(folder))
    assert listed.returncode == 0
    assert "not checked" in listed.stdout and "warpbook-labs[cuda]" in listed.stdout
    done = warpbook("labs", "submit", "vector-add", reference, PYTHONPATH=str(folder))
    assert done.returncode == 2 and "pip install 'warpbook-labs[cuda]'" in done.stderr
    # who writes a lab that is not on CUDA C++ needs none of it
    plan = warpbook("labs", "validate", "roofline", PYTHONPATH=str(folder))
    assert plan.returncode == 0 and "passes" in plan.stdout
    kernel = warpbook("labs", "validate", "vector-add", PYTHONPATH=str(folder))
    assert (
        kernel.returncode == 2 and "pip install 'warpbook-labs[cuda]'" in kernel.stderr
    )


def test_a_terminal_shows_how_far_a_long_check_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with actions.shown_progress():
        Steps(14).add(2)
    assert terminal.getvalue().strip("\r\x1b[K") == ""
    monkeypatch.setattr(check_progress, "_QUICK_S", 0.0)
    with actions.shown_progress():
        Steps(14).add(2)
    assert re.search(r"Checked 2 of 14 cases, \d+ s\.", terminal.getvalue())
    assert terminal.getvalue().endswith("\r\x1b[K")
