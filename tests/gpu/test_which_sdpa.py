"""Which kernels attention launches, beside what the lab's rules say.

pytest -m gpu -s tests/gpu/test_which_sdpa.py

The rules are those of PyTorch 2.11 on an H100 or H200; elsewhere another order is no
mistake, and the table is printed only.
"""

import random
import runpy
from types import ModuleType
from typing import Any

import pytest
import torch

from warpbook_labs.course.session import find

pytestmark = pytest.mark.gpu


def is_as_in_the_rules() -> bool:
    is_version = torch.__version__.startswith("2.11.")
    return is_version and torch.cuda.get_device_capability() == (9, 0)


def ran(given: dict[str, Any], written: ModuleType, call: Any) -> tuple[str, str]:
    """Run a call; give the backend by its kernels, and the kernel that tells it."""
    try:
        kernels = given["kernels"](call)
    except RuntimeError as problem:
        return "error", str(problem).partition("\n")[0]
    marks = ("sdpa", "flash", "fmha", "softmax")
    named = [name for name in kernels if any(mark in name for mark in marks)]
    return written.backend_ran(kernels), (named or kernels)[0]


def test_calls_run_and_decline_as_the_rules_say() -> None:
    lab = find("which-sdpa")
    given = runpy.run_path(str(lab.folder / "given.py"))
    written = ModuleType("answers")
    exec(lab.reference, written.__dict__)
    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print("call | by the rules | ran | checks that differ from them | kernel")
    wrong = []
    for question in lab.cases.questions(random.Random(7)):
        if question.function != "backend":
            continue
        about, call = question.about, question.arguments["call"]
        expected = written.backend(call)
        backend, kernel = ran(given, written, call)
        differing = [
            name
            for name in given["CHECKS"]
            if name in call["allowed"]
            and bool(given["declined"](call, name)) != bool(written.reasons(call, name))
        ]
        if backend != expected or differing:
            wrong.append((about, expected, backend, differing))
        print(
            f"{about} | {expected} | {backend} | {', '.join(differing) or '-'} | "
            f"{kernel[:70]}"
        )
    if is_as_in_the_rules():
        assert wrong == []
