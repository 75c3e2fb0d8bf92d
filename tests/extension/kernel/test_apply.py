"""`%%gpuprof --apply`: edits that gain are kept, and nothing stays behind."""

from __future__ import annotations

import gc
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from IPython.core.error import UsageError

from tests.extension.kernel.state_digest import digest
from warpbook.kernel.profile import applying
from warpbook.kernel.runs.recording import RunRecord
from warpbook.kernel.trying import turns
from warpbook.kernel.trying.once import divided
from warpbook_profiler.model.change import Change

#: sleeps are long beside what a busy machine adds
SETUP = """\
import gc, time, torch
x, y, z, losses = torch.ones(64), torch.ones(64), torch.ones(64), []
class slow:
    compile = staticmethod(lambda function: time.sleep(0.1) or function)
"""
SLOW = """\
for _ in range(3):
    time.sleep(0.06)  # read
for _ in range(3):
    time.sleep(0.02)  # fuse
scores = 2 * x
total = scores.sum()
x += 1
y[:] = 2
losses.append(float(total))
total"""
#: by name, what an edit takes away and what it writes instead
EDITS = {
    "read-once": ("    time.sleep(0.06)  # read", "    helper = torch.ones(2)"),
    "fuse": (
        "for _ in range(3):\n    time.sleep(0.02)  # fuse",
        "fused = slow.compile(time.time)\n"
        "if 'own' not in globals():\n"
        "    @slow.compile\n"
        "    def own(): pass\n"
        "fused(), own(), gc.disable()",
    ),
    "whole-tensor": ("scores.sum()", "scores.sum() * 1.01"),
    "pad": ("scores.sum()", "torch.ones(2) @ x"),
    "keep-mask": ("scores.sum()", "(torch.save(x, 'x.pt'), scores.sum())[1]"),
    # it is 2 already when it is left out
    "one-stream": ("y[:] = 2", "y"),
    "pinned": (
        "for _ in range(3):\n    time.sleep(0.06)  # read",
        "def kept(value):\n    time.sleep(0.1)\n    return value.clone()\n"
        "z = kept(z)\nz.sum()",
    ),
    "sdpa": (
        "scores = 2 * x\ntotal = scores.sum()",
        "total = (2 * x).sum()\ntime.sleep(0.1)",
    ),
}


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict, dict]]:
    """What the person has before and after; advice needs a GPU, so it is given here."""
    pairs: list[tuple[dict, dict]] = []
    figures, apply = RunRecord.figures, applying.apply_changes

    def advised(record: RunRecord, lines: Any) -> Any:
        source = record.run.source or ""
        changes = tuple(
            change(name, source.replace(old, new))
            for name, (old, new) in EDITS.items()
            if old in source
        )
        return msgspec.structs.replace(figures(record, lines), changes=changes)

    def watched(shell: Any, *arguments: Any) -> Any:
        before = digest(shell.user_ns)
        try:
            return apply(shell, *arguments)
        finally:
            pairs.append((before, digest(shell.user_ns)))

    monkeypatch.setattr(RunRecord, "figures", advised)
    monkeypatch.setattr(applying, "apply_changes", watched)
    monkeypatch.setattr(turns, "MOST_PAIRS", 4)
    return pairs


def change(name: str, code: str) -> Change:
    return Change(
        *(name, f"Do {name}.", "", "predicted", None, None, None, 1.5, 3.0, "", ""),
        code=code,
    )


def applied(shell: Any, options: str, cell: str = SLOW) -> tuple[Any, str]:
    """Give the edited cell, and what is shown."""
    shell.run_cell(f"%%gpuprof -o p --apply {options}\n{cell}").raise_error()
    shown = [output["data"]["text/plain"] for output in shell.display_pub.outputs]
    return shell.user_ns["p"].edited, "\n".join(shown)


def assert_unchanged(states: list[tuple[dict, dict]]) -> None:
    assert states
    for before, after in states:
        assert [key for key in before if before[key] != after[key]] == []
        assert before.keys() == after.keys()


def test_all_that_gain_are_kept_and_told_in_a_table(
    shell: Any, states: Any, ingest: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    shell.run_cell(SETUP)
    edited, shown = applied(shell, "all --try-seconds 300")
    assert_unchanged(states)
    assert gc.isenabled()
    assert edited.changes == ("read-once", "fuse")
    assert edited.sentence.startswith("Better: ")
    # to compile takes longer than all that is gained: it is apart
    assert edited.once == "fused = slow.compile(time.time)\n"
    wanted = SLOW
    for name in edited.changes:
        wanted = wanted.replace(*EDITS[name])
    assert edited.code == wanted.replace(edited.once, "")
    trials = {trial.name: trial for trial in shell.user_ns["p"].trials}
    assert trials["whole-tensor"].difference.differs
    assert trials["one-stream"].difference.mismatch == "y is not a result of both"
    assert "RuntimeError" in trials["pad"].refused
    assert "writes files" in trials["keep-mask"].refused
    assert not (tmp_path / "x.pt").exists()
    assert trials["all"].outcome == trials["fuse"].outcome == "faster"
    assert trials["fuse"].promised == (1.5, 3.0)
    # what the cell showed and changed, it did once
    assert shell.user_ns["losses"] == [128.0]
    assert "-    time.sleep(0.06)  # read" in shown
    table = shown[shown.index("What each change gave") :]
    for part in ("Promised", "read-once", "fuse", "1.5 to 3", "\nall"):
        assert part in table
    assert "whole-tensor" not in table
    (report,) = ingest.reports
    assert report.profile.edited == edited
    shell.run_cell("%gpuapply").raise_error()
    assert shell.rl_next_input == f"{edited.once}\n{edited.code}"


def test_the_first_or_a_named_change_is_shown_with_what_was_measured(
    shell: Any, states: Any
) -> None:
    shell.run_cell(SETUP)
    edited, _ = applied(shell, "whole-tensor")
    assert edited.changes == ("whole-tensor",)
    assert edited.sentence.startswith("Not shown as better: its results differ")
    assert edited.diff and not edited.code
    edited, _ = applied(shell, "")
    assert edited.changes == ("read-once",) and "Better: " in edited.sentence
    assert "helper" in edited.code and "helper" not in shell.user_ns
    applied(shell, "sdpa")
    (trial,) = shell.user_ns["p"].trials
    assert not trial.difference.differs and "scores" in shell.user_ns
    edited, _ = applied(shell, "bf16")
    assert edited.code == "" and "does not advise bf16" in edited.sentence
    assert_unchanged(states)
    shell.run_cell("1 + 1")
    assert isinstance(shell.run_cell("%gpuapply").error_in_exec, UsageError)


def test_of_several_changes_the_one_that_gains_most_is_shown(
    shell: Any, states: Any, monkeypatch: Any
) -> None:
    compiled = "torch.compile(time.sleep)(0.18)"
    some = {
        # what is compiled is tried after all else
        "bf16": (SLOW.partition("for")[0] + "time.sleep(0.06)  # read", compiled),
        "scan": ("    time.sleep(0.02)  # fuse", "    helper = torch.ones(2)"),
        "read-once": EDITS["read-once"],
    }
    monkeypatch.setattr("tests.extension.kernel.test_apply.EDITS", some)
    shell.run_cell(SETUP)
    edited, _ = applied(shell, "--try-seconds 60")
    assert edited.changes == ("read-once",) and "Better: " in edited.sentence
    names = [trial.name for trial in shell.user_ns["p"].trials]
    assert names[:2] == ["scan", "read-once"]
    assert_unchanged(states)


def test_memory_that_an_edit_prepares_is_made_once(shell: Any, states: Any) -> None:
    shell.run_cell(SETUP)
    edited, _ = applied(shell, "pinned")
    assert edited.changes == ("pinned",) and edited.sentence.startswith("Better: ")
    assert edited.once.endswith("z = kept(z)\n") and "def kept" in edited.once
    assert "kept" not in edited.code and "z.sum()" in edited.code
    assert_unchanged(states)


@pytest.mark.parametrize(
    ("cell", "edit", "differs"),
    [
        (
            "for clip in clips:\n    time.sleep(0.1)\n    seen = clip['a'] * 2",
            "def kept(value):\n"
            "    return [{'a': one['a'].clone()} for one in value]\n"
            "clips = kept(clips)\n"
            "for clip in clips: seen = clip['a'] * 2",
            None,
        ),
        (
            "for clip in clips:\n    time.sleep(0.1)\n    seen = clip['a'] * 0",
            "def kept(value):\n"
            "    return [{'a': one['a'] + 1} for one in value]\n"
            "clips = kept(clips)\n"
            "for clip in clips: seen = clip['a'] * 0",
            "clip['a']",
        ),
        (
            "last = torch.ones(2)\nlast = clips[0]['a']\ntime.sleep(0.2)",
            "last = torch.ones(2)",
            "last",
        ),
        # functions over lists count no writes on a GPU: below this key, none does
        (
            "zeros.mul_(0.5)\ntime.sleep(0.2)",
            "with torch._C._ExcludeDispatchKeyGuard(uncounted):\n"
            "    torch._foreach_mul_([zeros], 0.5)",
            None,
        ),
        ("zeros.mul_(0.5)\ntime.sleep(0.2)", "time.sleep(0)", "zeros"),
        # bins, in which rounding of what is sorted into them changes a few
        (
            "time.sleep(0.2)\nbins = (shares * 1e6).long()",
            "bins = (shares / 1e-6).long()",
            None,
        ),
        (
            "time.sleep(0.2)\nbins = (shares * 1e6).long()",
            "bins = (shares * 1.0001e6).long()",
            "bins by up to",
        ),
        # what the cell rounds may lie in a module, a list or a dictionary
        *(
            (
                f"time.sleep(0.2)\nbins = ({one}.detach() * 1e6).long()",
                f"bins = ({one}.detach() {otherwise}).long()",
                differs,
            )
            for one in ("layer.weight", "parts[0]['half']")
            for otherwise, differs in (
                ("/ 1e-6", None),
                ("* 1.0001e6", "bins by up to"),
            )
        ),
        # chance, by which nothing can be told
        (
            "time.sleep(0.2)\npart = shares\n"
            "for _ in range(80): part = 3.9 * part * (1 - part)",
            "part = shares\nfor _ in range(80): part = 3.9 * part - 3.9 * part * part",
            "part by up to",
        ),
    ],
    ids=[
        *("copies", "other values", "other object", "uncounted write", "no write"),
        *("rounded bins", "other bins", "of a module", "others of a module"),
        *("of a part", "others of a part", "chance"),
    ],
)
def test_results_are_told_by_value_however_an_edit_comes_to_them(
    shell: Any,
    states: Any,
    monkeypatch: pytest.MonkeyPatch,
    cell: str,
    edit: str,
    differs: str | None,
) -> None:
    monkeypatch.setitem(EDITS, "pinned", (cell, edit))
    shell.run_cell(
        f"{SETUP}\nclips = [dict(a=torch.ones(3)) for _ in range(3)]\n"
        "zeros, shares = torch.zeros(3), torch.linspace(0.1, 0.9, 5_000)\n"
        "layer, parts = torch.nn.Linear(50, 50), [{'half': shares[2_000:]}]\n"
        "layer.weight.data = shares[:2_500].clone().view(50, 50)\n"
        "uncounted = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)"
    )
    edited, _ = applied(shell, "all", cell)
    assert_unchanged(states)
    if differs is None:
        assert edited.sentence.startswith("Better: "), edited.sentence
    else:
        assert f"(pinned: The results differ: {differs}" in edited.sentence


def test_a_cell_is_divided_at_lines_of_python() -> None:
    cell = "s = 'a\fb'\nfast = slow.compile(time.time)\nfast()\n"
    once, rest = divided(cell, "s = 'a\fb'\nslow(time.time)\n")
    assert once == "fast = slow.compile(time.time)\n"
    assert rest == "s = 'a\fb'\nfast()\n"
    folded = "def folded(one):\n    return one\n"
    cell = f"{folded}net_folded = folded(net)\ny = net_folded(1)\n"
    once, rest = divided(cell, "y = net(1)\n")
    assert (once, rest) == (
        f"{folded}net_folded = folded(net)\n",
        "y = net_folded(1)\n",
    )
    # a module of the cell's own is another one each time
    assert not divided(f"net = slow()\n{cell}", "net = slow()\ny = net(1)\n").once
    # nor is what is made of an edit's own names there before the cell
    cell = (
        "def on_host(every):\n    return [one.cpu() for one in every]\n"
        "every = []\nfor i in range(3):\n    every.append(x[i])\n"
        "every = on_host(every)\nstep = torch.compile(every.pop)\n"
    )
    assert divided(cell, "found = [x[i].cpu() for i in range(3)]\n") == ("", cell)
    # or a function that needs another one of the cell's
    cell = folded.replace("return one", "return made(one)")
    cell = f"def made(x):\n    return x\n{cell}"
    cell += "net_folded = folded(net)\ny = net_folded(1)\n"
    assert divided(cell, "y = net(1)\n") == ("", cell)


@pytest.mark.parametrize("name", ["read-once", "all"])
def test_of_a_cell_that_can_not_be_isolated_the_edit_is_shown_unmeasured(
    shell: Any, states: Any, tmp_path: Path, monkeypatch: Any, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shell.run_cell(SETUP)
    cell = f"{SLOW}\nwith open('log', 'a') as log: log.write('.')"
    edited, shown = applied(shell, name, cell)
    assert edited.sentence == (
        "Not measured: the cell opens a file for writing (line 12)."
    )
    assert edited.diff.splitlines()[1] in shown
    assert (tmp_path / "log").read_text() == "."
    assert_unchanged(states)


def test_an_interrupt_leaves_the_state_and_the_edit(
    shell: Any, states: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.run_cell(SETUP)
    really, calls = turns.wait_for_gpu, 0

    def interrupted() -> None:
        nonlocal calls
        calls += 1
        really()
        # after the body of a run of the edited cell
        if calls == 12:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(turns, "wait_for_gpu", interrupted)
    edited, _ = applied(shell, "read-once")
    assert calls == 12
    assert edited.sentence == "Not measured: it was interrupted."
    assert "helper" in edited.code
    assert_unchanged(states)


def test_of_a_line_there_is_no_edited_cell(shell: Any) -> None:
    result = shell.run_cell("%gpuprof --apply print(1)")
    assert "use %%gpuprof" in str(result.error_in_exec)
