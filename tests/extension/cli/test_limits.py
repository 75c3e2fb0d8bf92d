"""`warpbook limits` where there is no GPU; with one, see tests/gpu/test_limits.py."""

import pytest

from warpbook.cli.main import main


def test_without_a_gpu_it_is_told_in_one_line(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(["limits", "--json"]) == 1
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("warpbook: no limits were measured: torch ")
    assert captured.err.endswith(" finds no GPU here.\n")
    assert captured.err.count("\n") == 1
