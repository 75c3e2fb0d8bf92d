import pytest

from warpbook import __version__


def test_version(warpbook) -> None:
    assert warpbook("--version").stdout.strip() == __version__


@pytest.mark.parametrize("wrong", [[], ["dance"], ["up", "--port", "many"]])
def test_wrong_command_line_is_told_and_status_2(warpbook, wrong: list[str]) -> None:
    done = warpbook(*wrong)
    assert done.returncode == 2
    assert "usage: warpbook" in done.stderr
    assert "Traceback" not in done.stderr
