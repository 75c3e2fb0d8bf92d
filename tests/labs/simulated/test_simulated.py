"""Host code without a GPU, by a simulated one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lab_checks import check
from tests.labs.simulated.sample_lab import write_lab
from warpbook.cli.labs.card import card_lines
from warpbook_labs.cards.card import card_of
from warpbook_labs.cards.html import card_html
from warpbook_labs.cases.sampling import hidden_cases, public_cases
from warpbook_labs.course.session import check_public, submit
from warpbook_labs.course.store import Store
from warpbook_labs.engines.simulated import checking as host_checking
from warpbook_labs.engines.simulated.messages import HostVerdicts, Judge, Verdict
from warpbook_labs.engines.simulated.preparation import PreparedCalls
from warpbook_labs.grading.validation import validate
from warpbook_labs.lab.host_spec import HostCount
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load
from warpbook_labs.results.check import CheckResult
from warpbook_labs.results.findings import COUNTED
from warpbook_labs.sandbox import warm
from warpbook_labs.sandbox.parent import Outcome

#: the copy runs on a stream that nobody waits for
RACE = """import torch

def prepare(n):
    return torch.cuda.Stream(), torch.empty(n, device="cuda")

def run(state, x, y, factor, out):
    stream, held = state
    with torch.cuda.stream(stream):
        held.copy_(x, non_blocking=True)
    out.copy_(factor * (held + y[:, 0]))
    y.add_(1)
"""


def checked(lab: LoadedLab, source: str) -> CheckResult:
    cases = public_cases(lab.lab) + hidden_cases(lab.lab, 5)
    return check(lab, source, cases)


def test_right_solutions_pass_and_wrong_ones_fail_with_every_draw(
    simulated: LoadedLab,
) -> None:
    verdicts = {verdict.file: verdict for verdict in validate(simulated, seeds=(1, 2))}
    assert all(verdict.ok for verdict in verdicts.values())
    wrong = verdicts["solutions/wrong/counted.py"].reason
    assert wrong.startswith("ten: In call 2: y[0, 0] is ")


def test_a_missing_wait_is_found_though_nothing_ran_at_the_same_time(
    simulated: LoadedLab,
) -> None:
    result = checked(simulated, RACE)
    assert (result.status, result.right) == ("failed", 0)
    [finding, *_] = result.cases[0].findings
    assert finding.kind == "race" and finding.line == 10
    mended = RACE.replace(
        "    out.copy_",
        "    torch.cuda.current_stream().wait_stream(stream)\n    out.copy_",
    )
    # the next call's copy might come before this one's sum has read
    waits = "stream.wait_stream(torch.cuda.current_stream())"
    mended = mended.replace("    with", f"    {waits}\n    with")
    assert checked(simulated, mended).status == "passed"


def test_a_wrong_element_names_the_lines_that_computed_and_that_copied_it(
    simulated: LoadedLab,
) -> None:
    source = """import torch

def prepare(n):
    return torch.empty(n, device="cuda")

def run(state, x, y, factor, out):
    held = x.cuda()
    state[:5] = held[:5] + y[:5, 0]
    torch.mul(held[5:], factor, out=state[5:])
    state[:5] *= factor
    out[:].copy_(state)
    y.add_(1)
"""
    first = checked(simulated, source).cases[0]
    assert first.wrong is not None and first.wrong.index == (5,)
    assert (first.wrong.computed_line, first.wrong.line) == (9, 11)
    assert (
        " Line 9 computed it; line 11 wrote it last. The value comes from "
        in first.message
    )


def test_of_hidden_cases_the_jail_has_other_inputs_than_the_judge(
    simulated: LoadedLab,
) -> None:
    case = hidden_cases(simulated.lab, 5)[0]
    prepared = PreparedCalls(simulated, case)
    true, decoys = prepared.to_run().calls, prepared.to_record().calls
    for one, other in zip(true, decoys, strict=True):
        assert one.numbers == other.numbers
        assert set(other.data) == {"x", "y"} < set(one.data)
    assert [call.data["y"] for call in true] != [decoy.data["y"] for decoy in decoys]
    # what Python saw while it was recorded is wrong for others, also where it is shown
    by_heart = """import torch

def prepare(n):
    pass

def run(state, x, y, factor, out):
    right = factor * (x.cuda() + y[:, 0])
    out.copy_(torch.tensor(right.tolist(), device="cuda"))
    y.add_(1)
"""
    result = checked(simulated, by_heart)
    assert result.right == 0 and not result.cases[0].is_hidden
    messages = [shown_case.message for shown_case in result.cases]
    assert all("Line 8: Python looks at numbers" in message for message in messages)
    # which is neither right nor wrong: a GPU would be given the true numbers
    assert result.status == "unsupported"
    assert result.message.startswith("It can't be checked without a GPU. Line 8: ")
    # what is wrong with the very numbers that Python saw is wrong
    wrong = by_heart.replace("    out.", "    right[200:300] = 0\n    out.")
    assert checked(simulated, wrong).status == "failed"
    hidden_only = "    right[256 if len(right) == 257 else len(right):] += 1\n    out."
    assert checked(simulated, by_heart.replace("    out.", hidden_only)).status == (
        "failed"
    )
    # to look is no mistake by itself
    decided = by_heart.replace('torch.tensor(right.tolist(), device="cuda")', "right")
    decided = decided.replace(
        "    y.add_", "    assert right.sum().item() < 1e9\n    y.add_"
    )
    assert checked(simulated, decided).status == "passed"


def test_each_call_counts_and_the_last_one_is_held_against_bounds(
    tmp_path: Path,
) -> None:
    assert set(HostCount.__args__) == set(COUNTED)  # type: ignore[attr-defined]
    more = '[[counted]]\ncount = "launches"\nmost = "4"\nabout = "Ask for less."'
    lab = load(write_lab(tmp_path, "simulated", "pinned", more))
    result = checked(lab, lab.reference)
    assert result.cases[0].message == (
        "Ask for less. Counted: 5 launches, at most 4. "
        "Most of it comes from line 13, line 14. Lines 7, 11, 12 and 15 lead to it."
    )
    words = f"{result.of} of {result.of} cases give the right result, 0 of them within"
    assert result.message.startswith(words)
    counts = result.cases[0].host_counts
    assert counts is not None and counts.h2d_bytes == 40


def test_cards_tell_counts_and_show_when_what_was_done(simulated: LoadedLab) -> None:
    result = check_public(simulated, simulated.reference).result
    card = card_of(result, simulated.reference)
    text = "\n".join(card_lines(card))
    assert "Last call on the simulated GPU (ten)" in text
    assert "5 launches, 1 host synchronization" in text
    assert "40 B to the GPU, 0 B from the GPU" in text
    assert "\n  to the GPU    ." in text and "# busy, - waiting" in text
    html = card_html(card)
    assert html.count("<rect") == len(result.cases[0].bars) > 5
    assert "<title>copy to the GPU, " in html and ", line 13</title>" in html


def test_a_submission_is_kept_with_its_counts(
    simulated: LoadedLab, tmp_path: Path
) -> None:
    store = Store(tmp_path / "labs.db")
    card = submit(store, simulated, simulated.reference, use_gpu=False)
    assert card.passed and card.submission == 1
    [kept] = store.gradings(1)
    assert kept.result == card.result
    # of hidden cases there is no picture of what was done
    assert {bool(case.bars) for case in kept.result.cases if case.is_hidden} == {False}


def test_what_the_simulated_gpu_has_not_is_told_with_its_line(
    simulated: LoadedLab,
) -> None:
    source = RACE.replace("held.copy_(x, non_blocking=True)", "torch.fft.fft(x)")
    message = checked(simulated, source).cases[0].message
    assert message.startswith("Line 9: ")
    assert "The simulated GPU has no `_fft_r2c` (line 9)." in message


def test_threads_are_told_to_be_missing(simulated: LoadedLab) -> None:
    source = RACE.replace(
        "held.copy_(x, non_blocking=True)",
        "__import__('threading').Thread(target=print).start()",
    )
    message = checked(simulated, source).cases[0].message
    assert "The simulated GPU has no threads beside the one that calls" in message
    assert "(line 9)" in message


def test_what_cant_be_loaded_is_told(simulated: LoadedLab) -> None:
    source = "import torch\nimport tkinter\n"
    result = checked(simulated, source)
    assert result.status == "compile error"
    words = "Line 2: ModuleNotFoundError: No module named 'tkinter'; there are torch,"
    assert result.message.startswith(words)


def test_it_is_told_how_the_functions_are_called(simulated: LoadedLab) -> None:
    source = RACE.replace("def run(state, ", "def run(")
    message = checked(simulated, source).cases[0].message
    assert message.startswith("TypeError: run() got multiple values for argument 'x'.")
    given = "state, x=..., y=..., out=..., factor=..."
    assert f"called as prepare(n=...) and run({given})." in message


def test_a_function_that_is_missing_is_told(simulated: LoadedLab) -> None:
    source = RACE.replace("def run(", "def runs(")
    result = checked(simulated, source)
    assert result.status == "compile error"
    words = "There is no function `run`: the lab calls prepare(n=...) and run(state, x"
    assert result.message.startswith(words)


NOTHING_WRITTEN = """import torch

def prepare(n):
    pass

def run(state, x, y, factor, out):
    out = factor * (x.cuda() + y[:, 0])
    y.add_(1)
"""


def test_a_new_name_is_told_only_where_nobody_writes_an_output(
    simulated: LoadedLab,
) -> None:
    words = "`out = ...` only gives a new tensor that name"
    [first, *_] = checked(simulated, NOTHING_WRITTEN).cases
    assert words in first.advice and words in first.message
    partly = NOTHING_WRITTEN.replace("out =", "out[:-1] =")
    partly = partly.replace("+ y[:, 0])", "+ y[:, 0])[:-1]")
    [first, *_] = checked(simulated, partly).cases
    assert first.wrong is not None and first.wrong.index == (9,)
    assert first.advice.startswith("Only part of `out` is written: ")
    from_nobody = NOTHING_WRITTEN.replace(
        "out = factor * (x.cuda() + y[:, 0])", "out.copy_(torch.empty_like(out))"
    )
    [first, *_] = checked(simulated, from_nobody).cases
    assert first.message == (
        "uninitialised read: Line 7: `copy` reads memory of line 7, which nobody has "
        "written before."
    )
    assert first.advice == ""


ENDLESS = """
def prepare(n):
    return None

def run(state, x, y, factor, out):
    while True: pass
"""


def test_after_a_case_that_takes_too_long_no_other_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = write_lab(tmp_path, "simulated", "pinned")
    text = (at / "lab.toml").read_text()
    (at / "lab.toml").write_text(text.replace("case_s = 2.0", "case_s = 0.2"))
    lab = load(at)
    # nor is another process begun
    monkeypatch.setattr(host_checking, "_MOST_BATCH_BYTES", 1)
    result = checked(lab, ENDLESS)
    first, *others = result.cases
    assert (result.status, result.right, len(others)) == ("failed", 0, 2)
    assert first.message == "Line 6: Timed out after 0.2 s."
    not_run = "It was not run, since a case before it took too long."
    assert {other.message for other in others} == {not_run}
    monkeypatch.undo()
    assert checked(lab, ENDLESS).cases == result.cases


@pytest.mark.parametrize("verdicts", [None, (), (Verdict(),) * 9, (Verdict("no"),) * 9])
def test_who_judges_is_believed_only_what_makes_sense(
    simulated: LoadedLab,
    verdicts: tuple[Verdict, ...] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = warm.run

    def answer(job: Any, *more: Any) -> Outcome:
        if not isinstance(job, Judge):
            return run(job, *more)
        judged = None if verdicts is None else HostVerdicts(verdicts[: len(job.trials)])
        return Outcome("crashed", "It crashed.", judged, None, 0.0)

    monkeypatch.setattr(warm, "run", answer)
    result = checked(simulated, simulated.reference)
    assert result.status in ("stopped", "failed") and result.right == 0


def test_a_source_that_ends_its_process_says_nothing_of_what_is_installed(
    simulated: LoadedLab,
) -> None:
    ends = """import sys
os = sys.modules["os"]
os.write(2, b"\\x1b[31mPyTorch is gone: install mine")
os._exit(4)
"""
    result = checked(simulated, ends + simulated.reference)
    assert (result.status, result.right) != ("passed", result.of)
    message = " ".join((result.message, *(case.message for case in result.cases)))
    assert "crashed" in message and "\x1b" not in message
