"""A PyTorch or machine that is not known is refused in words, before it is changed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from warpbook_labs.sandbox.parent import environment
from warpbook_monitors.python_path import own_path

#: what is changed, and what is said then
OTHERS = {
    "no table of guards": ("a._GUARDS = 'nothing'", "no table of device guards"),
    "no such function": ("a._GET_ACCELERATOR = 'nothing'", "it has no nothing"),
    "a library that does not call it": (
        "a._IS_ACCELERATOR = 'THPUtils_addPyMethodDefs'",
        "it has no THPUtils_addPyMethodDefs",
    ),
    "a call that is bound otherwise": (
        "a._data_of = lambda path: iter(())",
        "in another way",
    ),
    "another system": (
        "a.sys = types.SimpleNamespace(platform='darwin')",
        "64-bit Linux",
    ),
    "a build for AMD": ("torch.version.hip = '6'", "built for AMD's GPUs"),
    "no guards of Python's": (
        "saved = torch._C._acc; del torch._C._acc",
        "no device guard",
    ),
}
_CODE = """
import ctypes, json, sys, types
import torch
import warpbook_labs.engines.simulated.pytorch.accelerator as a
told = {{}}
for name, change in json.loads({others!r}).items():
    held = dict(vars(a))
    hip, acc = torch.version.hip, torch._C._acc
    exec(change)
    try:
        a.give_gpu()
        told[name] = "it was changed"
    except a.NotSupported as problem:
        told[name] = str(problem)
    vars(a).update(held)
    torch.version.hip, torch._C._acc = hip, acc
# what was refused was left as it was
from warpbook_labs.engines.simulated.pytorch import install
install._REHEARSAL = "assert 1 == 2, 'another answer'"
try:
    install.install()
except a.NotSupported as problem:
    told["another answer"] = str(problem)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def output_of() -> dict[str, str]:
    changes = json.dumps({name: change for name, (change, words) in OTHERS.items()})
    done = subprocess.run(
        [sys.executable, "-c", _CODE.format(others=changes)],
        capture_output=True,
        env={**environment(), "PYTHONPATH": own_path()},
        text=True,
    )
    assert done.returncode == 0, done.stderr
    words: dict[str, str] = json.loads(done.stdout)
    return words


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_where_it_is_known_to_be_is_refused(
    name: str, output_of: dict[str, str]
) -> None:
    assert OTHERS[name][1] in output_of[name]
    assert "2.13" in output_of[name] or "Linux" in output_of[name]


def test_a_pytorch_that_answers_otherwise_is_refused(output_of: dict[str, str]) -> None:
    assert "AssertionError: another answer" in output_of["another answer"]
    assert "pip install torch==2.13.0" in output_of["another answer"]
