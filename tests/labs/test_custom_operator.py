"""What the grader says of operators, and what PyTorch's own checks say of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from warpbook_labs.course.session import check_public
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loaded import LoadedLab

LAB = "custom-operator"

pytest.importorskip("torch")

TEXT = CATALOGUE / "training" / "custom_operator" / "text.md"
#: runs the text's own cell with each source, and tells what was raised
CHECKS = """
import json, sys
cell, sources = json.load(sys.stdin)
raised = {}
for name, source in sources.items():
    sys.modules["solution"] = solution = type(sys)("solution")
    exec(source, solution.__dict__)
    try:
        exec(cell, {})
        raised[name] = ""
    except Exception as problem:
        raised[name] = f"{type(problem).__name__}: {problem}"
print(json.dumps(raised))
"""


def test_gradcheck_and_opcheck_agree_with_the_grader(
    lab: LoadedLab, tmp_path: Path
) -> None:
    [cell, _] = re.findall(r"```python\n(.*?)```", TEXT.read_text(), re.DOTALL)
    assert "gradcheck" in cell and "opcheck" in cell
    (tmp_path / "given.py").write_text(lab.given)
    wrong = {
        "strides_are_taken_for_granted": "GradcheckError",
        "rstd_is_no_constant": "GradcheckError",
        "fake_with_strides_of_x": "OpCheckError",
        "x_is_written": "modified by an inplace operation",
    }
    sources = {"reference": lab.reference, **lab.correct}
    sources |= {name: lab.wrong[f"{name}.py"] for name in wrong}
    ran = subprocess.run(
        [sys.executable, "-c", CHECKS],
        input=json.dumps([cell, sources]),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    raised = json.loads(ran.stdout.splitlines()[-1])
    for name, words in raised.items():
        if name in wrong:
            assert wrong[name] in words, (name, words)
        else:
            assert words == "", (name, words)


def test_a_run_that_writes_what_is_right_without_an_operator_is_not_called(
    lab: LoadedLab,
) -> None:
    source = """
def prepare(rows, width):
    return None

def run(state, x, weight, grad, eps, out, grad_x, grad_weight, facts):
    import torch
    rows, width = x.shape
    inputs = x.detach().requires_grad_(), weight.detach().requires_grad_()
    scale = torch.rsqrt(inputs[0].square().mean(1, keepdim=True) + eps)
    result = inputs[0] * scale * inputs[1]
    slopes = torch.autograd.grad(result, inputs, grad)
    out.copy_(result.detach())
    grad_x.copy_(slopes[0])
    grad_weight.copy_(slopes[1])
    facts.copy_(torch.tensor([2 * rows, 2 * width + 1, 2 * width + 1, 1, 1, 1, 1]))
"""
    result = check_public(lab, source).result
    assert result.status == "failed" and result.right == 0
    assert all("NoneType" in case.message for case in result.cases)


def test_a_forward_that_does_without_the_kernel_is_told_so(lab: LoadedLab) -> None:
    result = check_public(lab, lab.wrong["kernel_is_not_called.py"]).result
    assert result.status == "failed" and result.right == 0
    words = "the forward never called `rms_norm_kernel` of given.py"
    assert all(words in case.message for case in result.cases)
