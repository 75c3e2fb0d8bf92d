"""The process that uses the GPU: its messages, and when its end is awaited."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.course.session import find
from warpbook_labs.engines.kernels.ahead import Ahead
from warpbook_labs.errors import BadRule
from warpbook_labs.gpu import parent
from warpbook_labs.gpu.jobs import Request

#: acts by the source of each request
STAND_IN = """
import os, sys, time
import msgspec
from warpbook_labs.gpu.jobs import Ended, Request, Trying
from warpbook_labs.sandbox.work import read_message

def tell(what):
    os.write(1, msgspec.json.encode(what) + b"\\n")

def main():
    while (message := read_message(sys.stdin.buffer, 1 << 20)) is not None:
        request = msgspec.msgpack.decode(message, type=Request)
        if request.source == "crash":
            sys.exit("It fell.")
        for pid in request.folder.split() if request.source == "job" else ():
            try:
                os.kill(int(pid), 0)
                tell(Trying(f"{pid} is still there", 0))
            except ProcessLookupError:
                tell(Trying(f"{pid} is gone", 0))
        if request.source == "first":
            tell(Trying("told", 0))
        if request.source == "wait":
            open(request.folder + "/asked", "x")
            assert read_message(sys.stdin.buffer, 1 << 20) is not None
            is_told = os.path.exists(request.folder + "/checked")
            tell(Ended("done" if is_told else "problem"))
        if request.source == "job":
            tell(Ended("done", "asked"))
            time.sleep(600)
        if request.source == "hang":
            time.sleep(600)
"""


@pytest.fixture(autouse=True)
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    path = os.pathsep.join((str(tmp_path), parent.own_path()))
    monkeypatch.setattr(parent, "own_path", lambda: path)


def run(source: str, folder: str = "", wall_s: float = 100.0) -> parent.WorkerReport:
    return parent.run(Request(folder, source, ()), "", wall_s, "stand_in")


def test_it_is_told_at_once_what_comes_and_asked_later() -> None:
    with parent.started("", Request("", "first", ()), "stand_in") as do:
        heard = do(Request("", "job", ()), 100.0)
    assert heard.trying is not None and heard.trying.step == "told"
    assert heard.ended is not None and heard.ended.message == "asked"


def test_who_told_its_end_is_not_waited_for_but_by_the_next() -> None:
    # it would sleep for minutes
    first = run("job")
    assert first.ended is not None and not first.problem
    second = run("job", str(first.pid))
    assert second.trying is not None
    assert second.trying.step == f"{first.pid} is gone"


def test_it_goes_on_when_it_is_told_to(tmp_path: Path) -> None:
    def until() -> None:
        while not (tmp_path / "asked").exists():
            time.sleep(0.01)
        (tmp_path / "checked").touch()

    request = Request(str(tmp_path), "wait", ())
    heard = parent.run(request, "", 100.0, "stand_in", until)
    assert heard.ended is not None and heard.ended.how == "done"


def test_who_falls_or_hangs_is_told_of() -> None:
    fallen = run("crash")
    assert fallen.ended is None and "It fell." in fallen.problem
    assert "Timed out after 1 s." == run("hang", wall_s=1.0).problem


def test_cases_are_made_ready_in_their_order_with_what_is_right() -> None:
    lab = find("vector-add")
    cases = tuple(public_cases(lab.lab)) * 3
    ahead = Ahead(Request(str(lab.folder), lab.reference, cases))
    for case, (given, prepared) in zip(cases, ahead.cases(), strict=True):
        ready = prepared()
        assert given is case and ready.case is case and ready._answers is not None


def test_a_rule_that_a_case_can_not_follow_is_told_where_that_case_is() -> None:
    lab = find("vector-add")
    small, *_, large = sorted(public_cases(lab.lab), key=lambda case: case.sizes["n"])
    assert small.sizes["n"] < large.sizes["n"]
    rule = f"<<<1024 / (n - {large.sizes['n']}), 256>>>"
    source = lab.reference
    line = next(line for line in source.splitlines() if "<<<" in line)
    begin, _, rest = line.partition("<<<")
    changed = source.replace(line, begin + rule + rest.partition(">>>")[2])
    ahead = Ahead(Request(str(lab.folder), changed, (large,)))
    ((_, prepared),) = ahead.cases()
    with pytest.raises(BadRule):
        prepared()
