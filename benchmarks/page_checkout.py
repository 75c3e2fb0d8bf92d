"""A version of warpbook whose server and pages a benchmark can run beside another's."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_SOURCES = ("extension", "labs", "monitors")


class Checkout:
    """Sources of one version, with its pages built."""

    def __init__(self, name: str, root: Path, share: Path) -> None:
        """Build the pages; `share` is a folder to make for Jupyter's own search."""
        self.name = name
        self.root = root
        self._share = share
        _build(root)
        extensions = share / "labextensions"
        extensions.mkdir(parents=True)
        pages = root / "extension/warpbook/labextension"
        (extensions / "warpbook").symlink_to(pages)

    @property
    def env(self) -> dict[str, str]:
        """What makes a server of this environment serve this version."""
        return {
            "PYTHONPATH": os.pathsep.join(str(self.root / name) for name in _SOURCES),
            "JUPYTER_PATH": str(self._share),
        }


@contextlib.contextmanager
def two_versions(commit: str, folder: Path) -> Iterator[tuple[Checkout, Checkout]]:
    """The version of a commit, in a worktree below `folder`, and this one."""
    older = folder / "older"
    _run("git", "worktree", "add", "--detach", str(older), commit, cwd=ROOT)
    try:
        modules = older / "frontend" / "node_modules"
        modules.symlink_to((ROOT / "frontend" / "node_modules").resolve())
        yield (
            Checkout(commit, older, folder / "share-older"),
            Checkout("this version", ROOT, folder / "share-newer"),
        )
    finally:
        _run("git", "worktree", "remove", "--force", str(older), cwd=ROOT)


def _build(root: Path) -> None:
    """Build with the packages of this checkout, whichever the older one names."""
    bundler = ROOT / "frontend" / "node_modules" / ".bin"
    path = os.pathsep.join(
        (str(bundler), str(Path(sys.executable).parent), os.environ["PATH"])
    )
    for step in (("tsc",), ("jupyter-builder", "build", ".")):
        _run(*step, cwd=root / "frontend", PATH=path)


def _run(*command: str, cwd: Path, **env: str) -> None:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
