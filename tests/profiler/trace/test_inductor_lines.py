"""Kernels of `torch.compile` lead to the lines of Python that they came from."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch._dynamo import utils

from tests.profiler.trace.written import call, kernel, trace
from warpbook_profiler.capture.inductor import kernel_lines
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.report.kernel_tables import kernels
from warpbook_profiler.report.links import Links
from warpbook_profiler.verdict.analysis import analyse

NAME = "triton_poi_fused_add_sin_0"
STACK = '  File "/lib/wrap.py", line 9, in call\n    f(x)\n  File "{}", line {}, in f\n'
CELL = "/tmp/ipykernel_12/345.py"


@pytest.mark.parametrize(
    ("told", "lines"),
    [
        (
            json.dumps(
                {
                    f"{NAME}:1": [STACK.format("/home/me/train.py", 14)],
                    f"{NAME}:7": [
                        STACK.format("/home/me/train.py", 12),
                        STACK.format(CELL, 3),
                    ],
                }
            ),
            "cell:3; train.py:12, 14",
        ),
        (json.dumps({f"{NAME}:1": ["no frame"]}), None),
        ('{"broken', None),
    ],
)
def test_lines_are_those_that_inductor_kept(
    told: str, lines: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one: Any = utils.CompilationMetrics(inductor_provenance={told})
    monkeypatch.setattr(utils, "_compilation_metrics", [one])
    found = kernel_lines()
    assert found.get(NAME) == lines
    path = tmp_path / "trace.json"
    path.write_bytes(trace(call(1, 90.0), kernel(1, 100.0, name=NAME)))
    events, run = read_chrome_trace(str(path))
    rows = analyse(events, replace(run, kernel_lines=found)).kernels
    shown = kernels(rows, 0, Links((), ())).rows[0][0].text
    assert shown == (f"{NAME} ({lines})" if lines else NAME)
