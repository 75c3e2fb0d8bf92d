"""Runs a program on a machine of its own accounts, of which the real one has none.

In a mount namespace `/etc` and `/home` are copies, so accounts can be made, and folders
that only root may enter show what those accounts need: Python and this repository. Run
as root: `unshare --mount python private_accounts.py FOLDER COMMAND...`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: of all learners; the service's and the grader's accounts have none
PASSWORD = "right, and long"
#: learners and their user ids, which no account of the real machine has
PEOPLE = {"grace": 53_001, "ada": 53_002, "bob": 53_003}
SERVICES = {"warpbook-hub": 53_011, "warpbook-grader": 53_012}


def within_accounts(folder: Path) -> tuple[str | Path, ...]:
    """Give what is put before a command to have it run so, with a folder to fill."""
    return "unshare", "--mount", sys.executable, Path(__file__), folder


def main(folder: Path, command: list[str]) -> None:
    """Make the accounts below a folder, and become the program."""
    etc = folder / "etc"
    shutil.copytree("/etc", etc, symlinks=True)
    _run("mount", "--bind", etc, "/etc")
    _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/home")
    _show(folder, [Path(sys.base_prefix), ROOT])
    for name, uid in {**PEOPLE, **SERVICES}.items():
        shell = "/bin/sh" if name in PEOPLE else "/usr/sbin/nologin"
        _run("useradd", "--create-home", "--shell", shell, "--uid", uid, name)
        os.chmod(f"/home/{name}", 0o700)
    passwords = "".join(f"{name}:{PASSWORD}\n" for name in PEOPLE)
    subprocess.run(["/usr/sbin/chpasswd"], input=passwords.encode(), check=True)
    os.execvp(command[0], command)


def _show(folder: Path, needed: list[Path]) -> None:
    """Let everybody reach folders that lie in one of root's, and nothing else there."""
    closed: dict[Path, list[Path]] = {}
    for path in needed:
        for parent in reversed(path.parents):
            if not parent.stat().st_mode & 1:
                closed.setdefault(parent, []).append(path)
                break
    for parent, paths in closed.items():
        kept = [folder / f"kept{number}" for number in range(len(paths))]
        for path, place in zip(paths, kept, strict=True):
            place.mkdir()
            _run("mount", "--bind", path, place)
        _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", parent)
        for path, place in zip(paths, kept, strict=True):
            path.mkdir(parents=True)
            _run("mount", "--move", place, path)
            place.rmdir()


def _run(*command: object) -> None:
    subprocess.run(list(map(str, command)), check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
