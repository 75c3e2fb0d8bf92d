"""`warpbook.memory()`: controls, and the same figures as the command."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import warpbook
from warpbook.cli.main import main
from warpbook_monitors.errors import MonitorError

ATTACK = "<img src=x onerror=window.attacked=1>"


def control(calculator: Any, label: str) -> Any:
    """What a person finds by its label."""

    def within(widget: Any) -> Any:
        for child in getattr(widget, "children", ()):
            yield child
            yield from within(child)

    (match,) = (
        widget
        for widget in within(calculator)
        if getattr(widget, "description", "").startswith(label)
    )
    return match


def drawn(calculator: Any) -> str:
    return str(calculator.children[0].value)


def test_a_control_changes_the_bar(capfd: pytest.CaptureFixture[str]) -> None:
    calculator = warpbook.memory("gpt2", batch=8, fits="24GB")
    assert "At the peak: 9.42 GiB of 22.5 GiB, 42 %" in drawn(calculator)
    control(calculator, "Batch (").value = 64
    control(calculator, "Checkpointing").value = "full"
    assert "9.42 GiB" not in drawn(calculator)
    # as the command that it names prints it
    command = calculator.command
    assert command == "warpbook memory gpt2 --batch 64 --checkpoint full --fits 24GB"
    assert main(shlex.split(command)[1:]) == 0
    printed = capfd.readouterr().out
    assert calculator.view.bar_title in printed
    assert calculator.view.bar_title in drawn(calculator)
    words = " ".join(printed.split())
    assert all(
        " ".join(line.split()) in words for line in repr(calculator).splitlines()
    )


def test_the_bar_is_told_to_who_does_not_see_it() -> None:
    html = drawn(warpbook.memory("gpt2", batch=8, fits="24GB"))
    (label,) = re.findall(r'<img [^>]*alt="([^"]*)"', html)
    assert label.startswith("At the peak: 9.42 GiB of 22.5 GiB, 42 %: weights 237 MiB")
    assert "<th>Held at the peak</th>" in html
    assert "<td>5.37 GiB</td><td>57 %</td>" in html


def test_controls_are_those_that_say_something() -> None:
    calculator = warpbook.memory("gpt2", inference=True)
    assert control(calculator, "Keys and values").layout.display is None
    assert control(calculator, "Optimizer").layout.display == "none"
    assert control(calculator, "Image").layout.display == "none"
    control(calculator, "Model").value = "resnet-50"
    control(calculator, "Inference").value = False
    assert control(calculator, "Image").layout.display is None
    assert control(calculator, "Sequence (").layout.display == "none"
    assert control(calculator, "Optimizer").layout.display is None
    assert "Training on 1 images of 224 × 224" in drawn(calculator)


def test_what_does_not_fit_together_is_told_and_can_be_mended() -> None:
    calculator = warpbook.memory("gpt2", fits="24GB")
    before = calculator.view
    control(calculator, "ZeRO").value = 1
    assert "--zero splits among the GPUs of --dp: set --dp 2 or more" in drawn(
        calculator
    )
    assert calculator.view == before
    control(calculator, "Data parallel").value = 2
    assert "On each of 2 GPUs:" in drawn(calculator)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"batch": 0}, ValueError, r"memory\(batch=0\): Expected `int` >= 1"),
        ({"precision": "fp12"}, ValueError, r"memory\(precision='fp12'\)"),
        ({"fits": "much"}, ValueError, "write 80GB or 24GiB"),
        ({"fits": "1GB"}, ValueError, "1GiB of it is kept free"),
        ({"batches": 2}, TypeError, "has no argument 'batches'. All: batch, "),
        ({"sequence": 9999}, MonitorError, "--sequence 1024 or less"),
    ],
)
def test_what_is_invalid_is_refused_in_words(
    arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        warpbook.memory("gpt2", **arguments)


def test_a_name_in_a_file_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        f'name = "{ATTACK}"\nsource = ""\n[[blocks]]\nname = "{ATTACK}"\n'
        'layers = [{ kind = "linear", inputs = 8, outputs = 8 }]\n'
    )
    calculator = warpbook.memory(str(path))
    assert "<img src=x" not in drawn(calculator)
    assert "<img src=x" not in calculator._repr_mimebundle_()["text/html"]


def test_a_gpu_has_the_memory_that_its_driver_tells() -> None:
    calculator = warpbook.memory("gpt2", fits="141GB")
    menu = dict(control(calculator, "Memory of the GPU").options)
    assert menu["H200 141GB: 143,771 MiB"] == "141GB"
    # in MiB, as nvidia-smi has them
    for fits, mib in (
        ("141GB", 143_771),
        ("80 gb", 81_559),
        ("80.0GB", 81_559),
        ("24GB", 23_034),
    ):
        calculator = warpbook.memory("gpt2", fits=fits)
        assert calculator.view.capacity_bytes == mib << 20
    assert warpbook.memory("gpt2", fits="30GB").view.capacity_bytes == 30 * 10**9
