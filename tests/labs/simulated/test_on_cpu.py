"""Host code by PyTorch on the CPU, where no simulated GPU can be had.

Each start takes seconds.
"""

from __future__ import annotations

import pytest

from tests.lab_checks import check, check_all
from warpbook_labs.cases.sampling import DrawnCase, hidden_cases, public_cases
from warpbook_labs.errors import NotInstalled
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.sandbox import warm


@pytest.fixture(autouse=True)
def without_simulated_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise NotInstalled("this PyTorch is not known")

    monkeypatch.setattr(warm, "run", refuse)


TRAINING = """import torch
from torch import nn

def prepare(n):
    torch.manual_seed(0)
    layer = nn.Linear(1, 1)
    return layer, torch.optim.AdamW(layer.parameters()), torch.amp.GradScaler("cpu")

def run(state, x, y, factor, out):
    layer, optimizer, scaler = state
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = layer(x[:, None]).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    eight = torch.ones(17, 32, dtype=torch.int8)
    assert torch._int_mm(eight, eight.t().contiguous())[0, 0] == 32
    image = x[:1].view(1, 1, 1, 1).to(torch.bfloat16)
    nn.functional.conv2d(image, image)
    print(torch.get_num_threads(), len(layer.weight.grad))
    out.copy_(factor * (x + y[:, 0]))
    y.add_(1)
"""
MISTAKES = """import torch
def prepare(n):
    return n

def run(state, x, y, factor, out):
    print("seen", state)
    torch.autocast("cuda")
    if state in (10, 1):
        raise ValueError(f"n is {state}")
    if state == 1000:
        x.zero_()
    while state == 257: pass
    y.add_(1)
"""

FOR_A_GPU = """import torch
from torch.cuda import nvtx

def prepare(n):
    torch.cuda.manual_seed_all(1)
    return n

def run(state, x, y, factor, out):
    with nvtx.range("a step"), torch.profiler.record_function("a step"):
        torch.cuda.synchronize()
        torch.cuda.synchronize(x.device)
    nvtx.range_push("another")
    nvtx.range_pop()
    torch.cuda.empty_cache()
    print(torch.cuda.is_available(), torch.cuda.device_count())
    out.copy_(factor * (x + y[:, 0]))
    y.add_(1)
"""


def test_what_training_loads_late_is_there_and_runs_on_one_thread(
    on_torch: LoadedLab,
) -> None:
    cases = public_cases(on_torch.lab) + hidden_cases(on_torch.lab, 5)
    result = check(on_torch, TRAINING, cases)
    assert result.status == "passed", result.cases
    assert result.cases[0].printed == "1 1\n1 1\n"
    assert "only the few system calls" in result.isolation


def test_a_call_that_is_wrong_is_named(on_torch: LoadedLab) -> None:
    # it counts its calls, so the first is right
    wrong = on_torch.wrong["counted.py"]
    [case] = check(on_torch, wrong, public_cases(on_torch.lab)[:1]).cases
    assert case.call == 2 and case.message.startswith("In call 2: y[0, 0] is ")


def test_what_goes_wrong_is_told_but_not_the_sizes_of_hidden_cases(
    on_torch: LoadedLab,
) -> None:
    hidden = [
        DrawnCase(f"hidden {n}", {"n": n}, "random", 3, True) for n in (1, 8, 257)
    ]
    cases = [*public_cases(on_torch.lab), *hidden]
    result = check_all(on_torch, MISTAKES, cases)
    raised, written, raised_there, unwritten, endless = result.cases
    assert raised.message == "Line 9: ValueError: n is 10"
    assert raised.sizes == {"n": 10}
    assert raised.printed.startswith("seen 10\nLine 7: UserWarning: ")
    assert written.message == "It writes `x`, which is an input."
    assert raised_there.message.startswith("Line 9: ValueError; details are shown for")
    assert endless.message == "Line 12: Timed out after 2 s."
    assert unwritten.wrong is not None
    assert (unwritten.wrong.output, unwritten.wrong.got) == ("out", "nothing")
    assert "`out = ...` only gives a new tensor that name" in unwritten.message
    for case in (raised_there, endless, unwritten):
        assert case.printed == "" and case.sizes is None


def test_what_has_nothing_to_do_without_a_gpu_does_nothing(
    on_torch: LoadedLab,
) -> None:
    result = check(on_torch, FOR_A_GPU)
    assert result.status == "passed", result.cases
    assert result.cases[0].printed.startswith("False 0\n")


#: what a GPU alone has; each is called for a case of its own size
FOR_A_GPU_ALONE = """import torch

CALLS = [
    lambda x: torch.tensor(1.0, device="cuda"),
    lambda x: x.cuda(),
    lambda x: x.to("cuda:0"),
    lambda x: torch.cuda.Event(enable_timing=True),
    lambda x: torch.cuda.Stream(),
    lambda x: torch.cuda.current_stream(),
    lambda x: torch.cuda.CUDAGraph(),
    lambda x: torch.cuda.get_device_properties(0),
]

def prepare(n):
    return n

def run(state, x, y, factor, out):
    CALLS[state - 1](x)
"""


def test_what_only_a_gpu_has_is_refused_in_words(on_torch: LoadedLab) -> None:
    cases = [DrawnCase(f"n {n}", {"n": n}, "random", 3, False) for n in range(1, 9)]
    result = check(on_torch, FOR_A_GPU_ALONE, cases)
    words = "Without a GPU this lab runs on the CPU: "
    for line, case in enumerate(result.cases, start=4):
        assert case.is_unsupported
        assert case.message.startswith(f"Line {line}: {words}")
    assert len(result.cases) == len(cases)
