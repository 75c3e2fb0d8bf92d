"""`warpbook memory`, as a person and as a program calls it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from warpbook.cli.main import main


def printed(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["memory", *arguments]) == 0
    return capfd.readouterr().out


def as_json(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    memory: dict[str, Any] = json.loads(printed(capfd, *arguments, "--json"))
    return memory


def test_a_table_of_80_columns(capfd: pytest.CaptureFixture[str]) -> None:
    text = printed(
        capfd,
        "llama-2-70b",
        *("--tp", "8", "--sp", "--pp", "4", "--micro-batches", "8"),
        *("--dp", "2", "--zero", "1", "--fits", "24GB"),
    )
    assert max(map(len, text.splitlines())) <= 80
    assert "  in all                 68,976,648,192" in text
    assert "On each GPU of stage 1 of 4, the heaviest; 64 GPUs in all:" in text
    assert "activations, 4 micro-batches in flight" in text
    assert "kept free: no" in text


def test_what_to_change_first(capfd: pytest.CaptureFixture[str]) -> None:
    text = printed(capfd, "gpt2", "--batch", "64", "--fits", "30GB")
    assert "Change first:\n  --batch 16 --micro-batches 4: smaller" in text
    memory = as_json(capfd, "gpt2", "--batch", "64", "--fits", "30GB")
    assert memory["fit"]["is_enough"] is False
    (change,) = memory["fit"]["changes"]
    assert change["options"] == "--batch 16 --micro-batches 4"
    lower = as_json(
        capfd, *("gpt2", "--batch", "16", "--micro-batches", "4", "--fits", "30GB")
    )
    assert lower["fit"]["is_enough"] is True
    assert lower["stages"][0]["peak_bytes"] == change["peak_bytes"]


def test_the_peak_is_a_bar_with_its_values(capfd: pytest.CaptureFixture[str]) -> None:
    lines = printed(capfd, "gpt2", "--batch", "8", "--fits", "24GB").splitlines()
    at = lines.index("At the peak: 9.42 GiB of 22.5 GiB, 42 %")
    bar = lines[at + 1].strip()
    assert bar.startswith("[W") and bar.endswith(".]") and len(bar) == 78
    # two fifths of it, the largest part the longest
    assert bar.count(".") == round(76 * (1 - 9.42 / 22.4))
    assert bar.count("T") > bar.count("A") > bar.count("S")
    assert "  T  temporaries        5.37 GiB     57 %" in lines
    assert "On each" not in "\n".join(lines)


def test_a_bar_that_is_too_long_says_where_the_gpu_is_full(
    capfd: pytest.CaptureFixture[str],
) -> None:
    lines = printed(capfd, "gpt2", "--batch", "64", "--fits", "30GB").splitlines()
    (bar,) = (line for line in lines if line.startswith("  ["))
    assert "|" in bar and "." not in bar
    assert "  |  where the GPU is full" in lines


def test_inference_has_weights_and_a_cache(capfd: pytest.CaptureFixture[str]) -> None:
    options = ("llama-3-8b", "--inference", "--batch", "4", "--kv-dtype", "fp8")
    text = printed(capfd, *options, "--dtype", "int4", "--sequence", "4096")
    assert "Inference of 4 × 4,096 tokens, weights in int4, cache in fp8" in text
    memory = as_json(capfd, *options, "--sequence", "4096")
    needed = memory["stages"][0]["needed"]
    assert needed["cache of keys and values"] == 4 * 4096 * 32 * 2 * 8 * 128


def test_images(capfd: pytest.CaptureFixture[str]) -> None:
    options = ("resnet-50", "--batch", "32", "--optimizer", "momentum")
    assert "Training on 32 images of 224 × 224" in printed(
        capfd, *options, "--precision", "fp32"
    )
    small, large = (
        as_json(capfd, *options, "--image", side)["stages"][0]["needed"]["activations"]
        for side in ("128", "256")
    )
    assert large / small == pytest.approx(4, rel=0.01)


def test_a_name_in_a_file_steers_no_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "a\\u001b[2Jb"\nsource = ""\n[[blocks]]\nname = "x\\ny"\n'
        'layers = [{ kind = "linear", inputs = 8, outputs = 8 }]\n'
    )
    text = printed(capfd, str(path))
    assert "\x1b" not in text
    assert "a?[2Jb" in text
    assert "x?y: linear" in text


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("gpt5",), 1, "is not a known model: choose one of bert-base"),
        (("gpt2", "--sequence", "9999"), 1, "--sequence 1024 or less"),
        (("gpt2", "--fits", "1GB"), 2, "1GiB of it is kept free"),
        (("gpt2", "--fits", "much"), 2, "write 80GB or 24GiB"),
        (("gpt2", "--batch", "0"), 2, "Expected `int` >= 1"),
        (("gpt2", "--batch", "20000"), 2, "Expected `int` <= 10000"),
        (("gpt2", "--zero", "4"), 2, "invalid choice"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    arguments: tuple[str, ...],
    status: int,
    words: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    try:
        ended = main(["memory", *arguments])
    except SystemExit as left:
        ended = left.code
    assert ended == status
    complaint = capfd.readouterr().err
    assert words in complaint
    assert "Traceback" not in complaint


def test_it_needs_neither_torch_nor_numpy() -> None:
    program = (
        "import sys; from warpbook.cli.main import main; main(['memory', 'gpt2']); "
        "sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert done.returncode == 0, done.stderr
