"""Training without a GPU: only its results are judged, and all is as on a GPU."""

from __future__ import annotations

import pytest

from tests.lab_checks import check, check_all
from warpbook_labs.cases.sampling import hidden_cases, public_cases
from warpbook_labs.engines.simulated import checking as host_checking
from warpbook_labs.errors import NotInstalled
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.results.check import CheckResult
from warpbook_labs.sandbox import warm

TRAINING = """import torch
from torch import nn

def prepare(n):
    torch.manual_seed(0)
    layer = nn.Linear(1, 1, device="cuda")
    graph = torch.cuda.CUDAGraph()
    return layer, torch.optim.AdamW(layer.parameters()), torch.amp.GradScaler("cuda")

def run(state, x, y, factor, out):
    layer, optimizer, scaler = state
    assert x.is_cuda and torch.cuda.is_available() and torch.cuda.device_count() == 1
    with torch.autocast("cuda", dtype=torch.float16):
        loss = layer(x[:, None]).square().mean()
        assert layer(x[:, None]).dtype == torch.float16
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    big = x[x > x.mean()]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        made = factor * (x + y[:, 0])
    torch.cuda.current_stream().wait_stream(side)
    print(torch.get_num_threads(), len(layer.weight.grad))
    out.copy_(made)
    y.add_(1)
"""


def checked(lab: LoadedLab, source: str) -> CheckResult:
    cases = public_cases(lab.lab) + hidden_cases(lab.lab, 5)
    return check_all(lab, source, cases)


def test_training_is_written_as_for_a_gpu(on_torch: LoadedLab) -> None:
    result = checked(on_torch, TRAINING)
    assert result.status == "passed", [case.message for case in result.cases]
    assert result.cases[0].printed == "1 1\n1 1\n"
    assert "only the few system calls" in result.isolation


def test_a_call_that_is_wrong_is_named(on_torch: LoadedLab) -> None:
    # it counts its calls, so the first is right
    wrong = on_torch.wrong["counted.py"]
    [case] = check(on_torch, wrong, public_cases(on_torch.lab)[:1]).cases
    assert case.call == 2 and case.message.startswith("In call 2: y[0, 0] is ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x.zero_()", "It writes `x`, which is an input."),
        ("raise ValueError(3)", "Line 26: ValueError: 3"),
        ("while True: pass", "Line 26: Timed out after 2 s."),
    ],
)
def test_what_goes_wrong_is_told(on_torch: LoadedLab, line: str, message: str) -> None:
    source = TRAINING.replace("    out.copy_(made)", f"    {line}")
    [case, *_] = checked(on_torch, source).cases
    assert case.message == message


def test_who_writes_nothing_is_told(on_torch: LoadedLab) -> None:
    source = TRAINING.replace("out.copy_(made)", "out = made")
    [case, *_] = checked(on_torch, source).cases
    assert "`out = ...` only gives a new tensor that name" in case.message


def test_without_pytorch_it_is_told_what_to_install(
    on_torch: LoadedLab, simulated: LoadedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise NotInstalled(
            "PyTorch can't be loaded: pip install 'warpbook-labs[torch]'"
        )

    monkeypatch.setattr(warm, "run", missing)
    monkeypatch.setattr(host_checking.parent, "run", missing)
    for lab in (on_torch, simulated):
        with pytest.raises(NotInstalled, match="pip install"):
            checked(lab, TRAINING)
