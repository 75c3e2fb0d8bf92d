"""Ray's sockets lie where no other account of the machine can replace them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warpbook_hub.grader.cluster.__main__ import private_folder


def test_only_the_account_enters(tmp_path: Path) -> None:
    folder = private_folder(tmp_path).parent
    assert folder.stat().st_mode & 0o077 == 0
    folder.chmod(0o777)
    assert private_folder(tmp_path).parent == folder
    assert folder.stat().st_mode & 0o077 == 0


def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"warpbook-ray-{os.geteuid()}").symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="another account"):
        private_folder(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder away")
def test_a_folder_of_another_account_is_refused(tmp_path: Path) -> None:
    folder = private_folder(tmp_path).parent
    os.chown(folder, 65534, 65534)
    with pytest.raises(PermissionError, match="another account"):
        private_folder(tmp_path)
