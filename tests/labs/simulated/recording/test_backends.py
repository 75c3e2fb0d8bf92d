"""Settings of `torch.backends` and determinism, beside those of a fresh PyTorch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
import torch as pytorch

from tests.labs.simulated.recording.pair import simulated

READ = (
    "torch.backends.fp32_precision",
    "cudnn.fp32_precision",
    "cudnn.conv.fp32_precision",
    "cudnn.rnn.fp32_precision",
    "cudnn.allow_tf32",
    "cudnn.benchmark",
    "cudnn.deterministic",
    "cudnn.enabled",
    "torch.are_deterministic_algorithms_enabled()",
    "torch.get_deterministic_debug_mode()",
    "torch.is_deterministic_algorithms_warn_only_enabled()",
)
PROGRAMS = (
    "pass",
    "torch.backends.fp32_precision = 'ieee'",
    "torch.backends.fp32_precision = 'tf32'",
    "torch.backends.fp32_precision = 'bf16'",
    "torch.backends.fp32_precision = 'x'",
    "torch.backends.fp32_precision = True",
    "torch.backends.fp32_precision = 'ieee'; torch.backends.fp32_precision = 'none'",
    "torch.backends.fp32_precision = 'ieee'; cudnn.allow_tf32 = True",
    "torch.backends.fp32_precision = 'ieee'; cudnn.fp32_precision = 'tf32'",
    "cudnn.fp32_precision = 'ieee'",
    "cudnn.fp32_precision = 'bf16'",
    "cudnn.fp32_precision = 'ieee'; cudnn.conv.fp32_precision = 'none'",
    "cudnn.conv.fp32_precision = 'ieee'",
    "cudnn.conv.fp32_precision = 'none'",
    "cudnn.conv.fp32_precision = 'tf32'; cudnn.fp32_precision = 'ieee'",
    "cudnn.conv.fp32_precision = 'ieee'; cudnn.rnn.fp32_precision = 'ieee'",
    "cudnn.conv.precision = 'ieee'",
    "cudnn.allow_tf32 = False",
    "cudnn.allow_tf32 = False; cudnn.conv.fp32_precision = 'tf32'",
    "cudnn.allow_tf32 = 1",
    "cudnn.benchmark = 1",
    "cudnn.deterministic = None",
    "cudnn.set_flags(True, True, None, True, False, 'tf32')",
    "cudnn.flags(benchmark=True).__enter__()",
    "c = cudnn.flags(True, allow_tf32=False); c.__enter__(); print(cudnn.allow_tf32)",
    "c = cudnn.flags(); c.__enter__(); c.__exit__(None, None, None)",
    "cudnn.conv.fp32_precision = 'ieee'; cudnn.flags(True).__enter__()",
    "c = torch.backends.flags('ieee'); c.__enter__(); c.__exit__(None, None, None)",
    "torch.use_deterministic_algorithms(1)",
    "torch.use_deterministic_algorithms(True, warn_only=True)",
    "torch.set_deterministic_debug_mode('error')",
    "torch.set_deterministic_debug_mode(1)",
    "torch.set_deterministic_debug_mode(3)",
    "torch.set_deterministic_debug_mode('x')",
)


def answers(torch: Any, program: str) -> list[Any]:
    """What the settings are after a program, or what was raised."""
    space = {"torch": torch, "cudnn": torch.backends.cudnn}
    found: list[Any] = []
    try:
        exec(program, space)
    except Exception as problem:  # noqa: BLE001 - any is compared
        found.append(type(problem).__name__)
    for name in READ:
        try:
            found.append(eval(name, space))
        except RuntimeError:
            found.append("RuntimeError")
    return found


@pytest.fixture(scope="module")
def right() -> dict[str, list[Any]]:
    """What PyTorch answers: of what it was told, it forgets nothing in a process."""
    told = subprocess.run(
        [sys.executable, __file__],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    lines = [line for line in told.stdout.splitlines() if line.startswith("[")]
    return dict(json.loads(line) for line in lines)


@pytest.mark.parametrize("program", PROGRAMS)
def test_settings_are_looked_up_as_pytorch_does(
    program: str, right: dict[str, list[Any]]
) -> None:
    assert answers(simulated(), program) == right[program]


@pytest.mark.parametrize(
    ("where", "name", "meant"),
    [
        ("torch.backends.cudnn", "benchmarks", "benchmark"),
        ("torch.backends.cudnn", "determinstic", "deterministic"),
        ("torch.backends", "fp32_precison", "fp32_precision"),
    ],
)
def test_a_setting_that_pytorch_has_not_is_said_to_be_misspelled(
    where: str, name: str, meant: str
) -> None:
    module = eval(where, {"torch": simulated()})
    words = f"{where} has no setting `{name}`; did you mean `{meant}`?"
    with pytest.raises(AttributeError) as told:
        setattr(module, name, True)
    assert str(told.value) == words
    with pytest.raises(AttributeError) as told:
        getattr(module, name)
    assert str(told.value) == words


def test_what_changes_nothing_is_taken() -> None:
    torch = simulated()
    torch.cuda.manual_seed_all(0)
    torch.backends.cudnn.benchmark_limit = 0
    assert torch.backends.cudnn.benchmark_limit == 0
    assert torch.backends.cudnn.version() is None
    torch.utils.deterministic.fill_uninitialized_memory = True


def test_who_disabled_cudnn_is_named() -> None:
    torch = simulated()
    x = torch.ones(1, 1, 3, 3)
    with torch.backends.cudnn.flags(benchmark=True):
        with pytest.raises(AttributeError, match="it sets `enabled=False` unless"):
            torch.conv2d(x, x)
    torch.conv2d(x, x)


def _in_fresh_processes() -> None:
    for program in PROGRAMS:
        if not os.fork():
            answer = [program, answers(pytorch, program)]
            sys.stdout.write(f"{json.dumps(answer)}\n")
            sys.stdout.flush()
            os._exit(0)
        os.wait()


if __name__ == "__main__":
    _in_fresh_processes()
