"""The baseline of a lab on host code says what is right where it is timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.labs.simulated.sample_lab import RIGHT, WRONG, write_lab
from warpbook_labs.engines.host.session import host_baseline
from warpbook_labs.errors import BadLab
from warpbook_labs.grading.validation import Verdict, validate
from warpbook_labs.lab.loader import load

SPEED = """
[speed]
sizes = { n = 1000000 }
values = ["random"]
baseline = "slow.py"
of_baseline = 1.5
"""
COUNTED = """
[[counted]]
count = "launches"
most = "5"
about = "Ask for less."
"""
RIGHT, WRONG = (source.replace("DEVICE", '"cuda"') for source in (RIGHT, WRONG))


def lab(folder: Path, baseline: str, more: str = SPEED) -> Path:
    at = write_lab(folder, "simulated", "pinned", more)
    (at / "slow.py").write_text(baseline, encoding="utf-8")
    return at


def verdict(at: Path) -> Verdict:
    [slow] = [
        verdict_of
        for verdict_of in validate(load(at), (1, 2))
        if verdict_of.file == "slow.py"
    ]
    return slow


def test_it_is_loaded_and_a_bad_one_is_refused_with_file_and_key(
    tmp_path: Path,
) -> None:
    at = lab(tmp_path, RIGHT)
    loaded = load(at)
    assert loaded.baseline == host_baseline(loaded) == RIGHT
    (at / "slow.py").write_text(RIGHT.replace("def run", "def runs"))
    with pytest.raises(BadLab, match=r"slow\.py: it has no run\(\)"):
        load(at)
    (at / "slow.py").unlink()
    words = r"lab\.toml: speed\.baseline: `slow\.py` is not in the folder"
    with pytest.raises(BadLab, match=words):
        load(at)
    (at / "lab.toml").write_text(
        (at / "lab.toml").read_text().replace('baseline = "slow.py"\n', "")
    )
    loaded = load(at)
    assert loaded.baseline == "" and host_baseline(loaded) == loaded.reference


def test_a_wrong_one_is_told(tmp_path: Path) -> None:
    wrong = verdict(lab(tmp_path, WRONG))
    assert (wrong.should, wrong.ok) == ("pass", False)
    assert wrong.reason.startswith("timed: In call 2: y[0, 0] is ")


def test_it_may_ask_for_more_than_learners_and_be_off_as_far_as_is_timed(
    tmp_path: Path,
) -> None:
    slow = RIGHT.replace("y.add_(1)", "y.add_(1)\n    sums.add_(1)")
    at = lab(tmp_path, slow, COUNTED + SPEED)
    assert verdict(at).ok
    # the largest tolerance is 1, and twice that is allowed
    cases = (at / "cases.py").read_text()
    allowed = '"out": np.eye(1, sizes["n"])[0]'
    (at / "cases.py").write_text(cases.replace('"out": 0.0', allowed))
    for off, is_right in ((2, True), (3, False)):
        source = slow.replace("sums * factor", f"sums * factor + {off}")
        (at / "slow.py").write_text(source)
        assert verdict(at).ok is is_right


def test_it_is_asked_what_is_timed_only(tmp_path: Path) -> None:
    only = "    if len(x) != 999: raise ValueError(len(x))\n    state"
    assert verdict(lab(tmp_path, RIGHT.replace("    state", only, 1))).ok
