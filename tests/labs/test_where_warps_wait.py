"""The lab of stalls asks about what a GPU recorded of the kernels that it shows."""

from __future__ import annotations

import json
import random
import re

from warpbook_labs.compiler.nvrtc import compile_to_ptx
from warpbook_labs.course.session import find
from warpbook_profiler.stalls.reasons import stall_reasons


def test_recordings_are_of_the_lines_that_learners_see() -> None:
    lab = find("where-do-the-warps-wait")
    source = (lab.folder / "kernels.cu").read_text()
    cubin = compile_to_ptx(source, "sm_90").cubin
    recorded = json.loads((lab.folder / "recorded.json").read_text())
    text = (lab.folder / "text.md").read_text()
    asked = lab.cases.questions(random.Random(1))
    shown = {
        question.arguments["kernel"]["name"]: question.arguments["kernel"]["source"]
        for question in asked
        if question.function == "predict"
    }
    assert set(shown) == {kernel["name"] for kernel in recorded["kernels"]}
    for kernel in recorded["kernels"]:
        assert f".text.{kernel['name']}".encode() in cubin
        lines = {row["line"] for row in shown[kernel["name"]]}
        assert {line for _, line, _, _ in kernel["samples"]} <= lines
        of = re.search(rf"`{kernel['name']}`.*\| ([\d,]+) µs \|", text)
        if of is not None:
            assert int(of[1].replace(",", "")) == round(kernel["time_ns"] / 1000)
    known = {name.removesuffix("_not_issued") for name in recorded["reasons"]}
    assert known <= set(stall_reasons())
