"""What every step of the set-up needs: say it, run it, remember it.

Standard library only: this runs on the system's Python, before anything of
ours is installed.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / "bin"
PYTHON = BIN / "python"
#: programs that the tests start, by the name they are known under here
TEST_PROGRAMS = ROOT / ".cache" / "bin"
#: our own programs come first, so that jlpm finds the node that we installed
PATH = f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def say(text: str) -> None:
    """Tell the person what happens now."""
    print(f"warpbook: {text}", flush=True)


def run(*command: str | Path, cwd: Path = ROOT, **env: str) -> None:
    """Run a command that must succeed, with our programs first on PATH."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env={**os.environ, "PATH": PATH, **env})
    if done.returncode != 0:
        sys.exit(f"warpbook: this failed: {shlex.join(words)}")


def which(program: str) -> str | None:
    """Find a program, ours before the system's."""
    return shutil.which(program, path=PATH)


def digest(files: Iterable[Path]) -> str:
    """Give one short name to the contents of files."""
    sha = hashlib.sha256()
    for file in sorted(files):
        sha.update(str(file.relative_to(ROOT)).encode() + b"\0")
        sha.update(file.read_bytes() + b"\0")
    return sha.hexdigest()


def once(
    name: str, inputs: str, made: Iterable[Path], step: Callable[[], None]
) -> None:
    """Run a step unless it ran for the same inputs and what it made is there."""
    if not is_done(name, inputs, made):
        step()
        remember(name, inputs)


def is_done(name: str, inputs: str, made: Iterable[Path]) -> bool:
    """Whether a step ran for the same inputs, and what it made is there."""
    stamp = _stamp(name)
    if not stamp.is_file() or stamp.read_text() != inputs:
        return False
    return all(path.exists() for path in made)


def remember(name: str, inputs: str) -> None:
    """Note that a step ran for these inputs."""
    stamp = _stamp(name)
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(inputs)


def _stamp(name: str) -> Path:
    """The stamps lie in the environment: whoever deletes it starts afresh."""
    return VENV / "warpbook-setup" / name


def apt_install(why: str, *packages: str) -> None:
    """Install Debian packages, with sudo unless root, and say so before."""
    get = _apt_get(why, *packages)
    install = [*get, "install", "-y", "--no-install-recommends", *packages]
    say(f"{why}. Running: {shlex.join(install)}")
    run(*get, "update")
    run(*install)


def apt_unpack(why: str, package: str, folder: Path) -> None:
    """Unpack a Debian package below `folder`; nothing is installed or started."""
    get = _apt_get(why, package)
    say(f"{why}; fetching Debian's package {package} to unpack it")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    fetch = ["apt-get", "-q", "download", package]
    if subprocess.run(fetch, cwd=folder, capture_output=True).returncode != 0:
        run(*get, "update")
        run(*fetch, cwd=folder)
    (archive,) = folder.glob("*.deb")
    run("dpkg-deb", "--extract", archive, folder)
    archive.unlink()


def _apt_get(why: str, *packages: str) -> list[str]:
    """Give apt-get as root, or end with what a person must install."""
    if not shutil.which("apt-get"):
        sys.exit(f"warpbook: {why}. Please install: {' '.join(packages)}")
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    if as_root and not shutil.which("sudo"):
        wanted = f"apt-get install {' '.join(packages)}"
        sys.exit(f"warpbook: {why}, and there is no sudo. As root: {wanted}")
    return [*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]
