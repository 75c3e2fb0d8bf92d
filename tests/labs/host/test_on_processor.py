"""Host code without a GPU, by PyTorch on the processor."""

from __future__ import annotations

from warpbook_labs.checking import check
from warpbook_labs.drawing import hidden_cases, public_cases
from warpbook_labs.jail.limits import Limits
from warpbook_labs.loader import LoadedLab
from warpbook_labs.results import CheckResult
from warpbook_labs.validating import validate


def checked(lab: LoadedLab, source: str) -> CheckResult:
    cases = public_cases(lab.lab) + hidden_cases(lab.lab, 5)
    return check(lab, source, cases, Limits())


def run(lines: str) -> str:
    return f"import torch\n\ndef prepare(n):\n    pass\n\n{lines}"


def test_right_solutions_pass_and_wrong_ones_fail_with_every_draw(
    on_torch: LoadedLab,
) -> None:
    verdicts = {each.file: each for each in validate(on_torch, seeds=(1, 2))}
    assert all(each.ok for each in verdicts.values())
    # it counts its calls, so the first is right
    wrong = verdicts["solutions/wrong/counted.py"].reason
    assert wrong.startswith("ten: In call 2: y[0, 0] is ")


def test_what_training_loads_late_is_there_and_runs_on_one_thread(
    on_torch: LoadedLab,
) -> None:
    source = """import torch
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
    result = checked(on_torch, source)
    assert result.status == "passed", result.cases
    assert result.cases[0].printed == "1 1\n1 1\n"
    assert "only the few system calls" in result.isolation


def test_what_goes_wrong_is_told_with_its_line_and_hidden_sizes_are_not(
    on_torch: LoadedLab,
) -> None:
    source = run(
        """def run(state, x, y, factor, out):
    print("seen", len(x))
    raise ValueError(f"n is {len(x)}")
"""
    )
    result = checked(on_torch, source)
    shown, hidden = result.cases[0], result.cases[-1]
    assert shown.message == "Line 8: ValueError: n is 10"
    assert shown.printed == "seen 10\n" and shown.sizes == {"n": 10}
    assert hidden.is_hidden and hidden.printed == "" and hidden.sizes is None
    assert hidden.message.startswith("Line 8: ValueError; its words are told of")
    assert len(result.cases) == 3 and result.of > 4


def test_an_input_that_is_written_and_an_output_that_is_not(
    on_torch: LoadedLab,
) -> None:
    written = "def run(state, x, y, factor, out):\n    x.zero_()\n"
    result = checked(on_torch, run(written))
    messages = {each.message for each in result.cases}
    assert messages == {"It writes `x`, which is an input."}
    half = """def run(state, x, y, factor, out):
    out = factor * (x + y[:, 0])
    y.add_(1)
"""
    wrong = checked(on_torch, run(half)).cases[0].wrong
    assert wrong is not None and (wrong.output, wrong.got) == ("out", "nothing")


def test_what_cant_be_loaded_or_called_is_told(on_torch: LoadedLab) -> None:
    result = checked(on_torch, "import torch\nimport tkinter\n")
    assert result.status == "compile error"
    words = "Line 2: ModuleNotFoundError: No module named 'tkinter'; there are torch,"
    assert result.message.startswith(words)
    endless = run("def run(state, x, y, factor, out):\n    while True: pass\n")
    first = check(on_torch, endless, public_cases(on_torch.lab)[:1], Limits()).cases[0]
    assert first.message == "Line 7: It took longer than 2 s."
