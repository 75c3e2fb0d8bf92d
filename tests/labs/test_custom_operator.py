"""What the grader says of operators, and what PyTorch's own checks say of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from warpbook_labs.course.session import find
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loaded import LoadedLab

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


@pytest.fixture(scope="module")
def lab() -> LoadedLab:
    return find("custom-operator")


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
