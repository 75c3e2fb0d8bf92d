"""What `warpbook hub` refuses to lease, before it begins anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpbook.cli.main import main


@pytest.mark.parametrize(
    ("options", "words"),
    [
        # all learners of a demo have one account
        (("--lease-gpu", "/dev/null"), "--users system"),
        (
            ("--users", "system", "--lease-gpu", "/dev/null", "--notebooks-use-gpu"),
            "exclude each other",
        ),
        (("--users", "system", "--lease-gpu", "/dev/no-gpu"), "no such device"),
        (("--lease-idle-min", "-1"), "0 to 1440"),
    ],
)
def test_what_cant_be_leased_is_refused(
    options: tuple[str, ...],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "hub"
    assert main(["hub", "--folder", str(folder), *options]) == 1
    assert words in capsys.readouterr().err
    assert not folder.exists()
