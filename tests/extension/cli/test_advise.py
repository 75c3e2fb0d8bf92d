"""`warpbook advise` as a person runs it: on traces, and on scripts that it runs."""

import gzip
import json
import os
import re
import time
from pathlib import Path

import pytest

from tests.extension.cli.conftest import Warpbook
from warpbook.cli.advise import early_variables
from warpbook.cli.main import main

DATA = Path(__file__).parents[2] / "data"
TRAINING = str(DATA / "traces" / "train_fp32.json.gz")


def test_what_is_missing_comes_first_with_its_gain_and_its_lab(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["advise", TRAINING]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 no, 6 yes, 1 unknown, 10 not applicable."
    at = lines.index(
        "  Are products in half precision (AMP)? [mixed-precision] "
        "(lab: mixed-precision)"
    )
    assert lines[3] == "No: not used, though it applies" and at < 10
    gain = r"About 3\.\d+ ms \(1\.\d+ to 5\.\d+ ms\) instead of about 14\.8 ms"
    assert re.search(gain, lines[at + 2])


def test_json_has_each_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", TRAINING, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (checklist,) = printed["checklists"].values()
    answers = {line["name"]: line["answer"] for line in checklist["lines"]}
    assert answers["tensor-cores"] == "no"
    assert answers["checkpointing"] == "unknown"


def test_settings_are_looked_up_in_the_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = str(DATA / "exam_h100" / "resnet18_one_image.json.gz")
    source = tmp_path / "infer.py"
    source.write_text("torch.backends.cudnn.benchmark = True\nmodel(x)\n")
    assert main(["advise", trace, "--source", str(source)]) == 0
    printed = capsys.readouterr().out
    assert "sets torch.backends.cudnn.benchmark to True (line 1)." in printed
    assert "Autograd recorded nothing here." in printed


def test_the_ranks_of_a_job_have_a_list_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["advise", str(DATA / "ranks" / "nccl")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "rank0.json.gz" and "rank1.json.gz" in lines


def test_a_table_of_kernels_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "raw.csv"
    table.write_bytes(gzip.decompress((DATA / "ncu" / "raw.csv.gz").read_bytes()))
    assert main(["advise", str(table)]) == 1
    assert "has kernels alone: give a trace" in capsys.readouterr().err


def test_a_script_is_run_as_itself_and_judged(
    warpbook: Warpbook, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "numbers_of_mine.py").write_text("SIZE = 8\n")
    (folder / "data.txt").write_text("here\n")
    (folder / "infer.py").write_text(
        "import sys, torch\n"
        "from numbers_of_mine import SIZE\n"
        "if __name__ == '__main__':\n"
        "    print('ran with', sys.argv[1:], open('project/data.txt').read())\n"
        "    torch.backends.cudnn.benchmark = True\n"
        "    layer = torch.nn.Conv2d(3, SIZE, 3)\n"
        "    with torch.inference_mode():\n"
        "        layer(torch.randn(4, 3, 64, 64))\n"
    )
    done = warpbook("advise", "project/infer.py", "--args=--epochs '2 3'")
    assert done.returncode == 0, done.stderr
    assert "ran with ['--epochs', '2 3'] here" in done.stderr
    assert "ran with" not in done.stdout
    assert "torch.backends.cudnn.benchmark is True in the process" in done.stdout
    assert "The code uses torch.inference_mode (line 7)." in done.stdout


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise ValueError('no such data')\n", "ValueError: no such data"),
        ("import sys\nsys.exit(3)\n", "it ended with status 3"),
        ("import sys\nsys.exit('no data here')\n", "it ended: no data here"),
        ("def broken(:\n", "SyntaxError: "),
        ("import os\nos._exit(7)\n", "ended with status 7 and left no profile"),
    ],
)
def test_a_script_that_fails_says_why(
    warpbook: Warpbook, tmp_path: Path, source: str, said: str
) -> None:
    (tmp_path / "bad.py").write_text(source)
    done = warpbook("advise", "bad.py")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("warpbook: bad.py") and said in last
    assert "script_run.py" not in done.stderr and "runpy" not in done.stderr


def test_a_script_that_runs_too_long_is_ended_with_its_children(
    warpbook: Warpbook, tmp_path: Path
) -> None:
    (tmp_path / "long.py").write_text(
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "open('child', 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    # on a busy machine importing torch alone takes longer
    for timeout_s in (10, 60, 300):
        done = warpbook("advise", "long.py", "--timeout", str(timeout_s))
        assert done.returncode == 1
        assert f"long.py still ran after {timeout_s} s: let it do" in done.stderr
        if (tmp_path / "child").exists():
            break
    child = Path("/proc") / (tmp_path / "child").read_text()
    while _lives(child):
        time.sleep(0.1)


def _lives(process: Path) -> bool:
    try:
        return "Z (zombie)" not in (process / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_without_torch_a_script_is_refused(warpbook: Warpbook, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('never')\n")
    # a Python that finds no torch
    (tmp_path / "sitecustomize.py").write_text(
        "from importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        "PathFinder.find_spec = lambda name, *rest: (\n"
        "    None if name == 'torch' else find(name, *rest)\n"
        ")\n"
    )
    done = warpbook(
        "advise",
        "train.py",
        PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}",
    )
    assert done.returncode == 1
    assert "PyTorch, which is not installed for this Python" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["train.py", "--source", "x.py"],
        [TRAINING, "--timeout", "5"],
        [TRAINING, "--args=x"],
        ["train.py", "--timeout", "0"],
        ["train.py", "--args='"],
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["advise", *options])
    assert "warpbook advise: error: " in capsys.readouterr().err


def test_what_a_script_sets_for_cuda_is_there_before_torch_is() -> None:
    source = """
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
os.environ["OMP_NUM_THREADS"] = str(2)
os.environ["PATH"] = "/nowhere"
if False:
    os.environ["TORCH_LOGS"] = "all"
import torch
"""
    assert early_variables(source) == {"CUDA_VISIBLE_DEVICES": "1"}
    assert early_variables("this is no Python") == {}
