"""Build the distribution `warpbook-agent`: sdist, and a wheel from that sdist.

    python tools/agent_wheel.py [--outdir dist] [--no-isolation]

It has `warpbook_monitors.agent` and what that imports, found by reading the sources: a
module that moves comes along, and nothing is listed twice.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from modulefinder import ModuleFinder
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MONITORS = ROOT / "monitors"
PACKAGE = "warpbook_monitors"
ENTRY = MONITORS / PACKAGE / "agent.py"


def sources() -> list[Path]:
    """Find all files of the package that the agent imports, at its start or later."""
    # nothing else is in reach: what is not of the package is not followed
    finder = ModuleFinder(path=[str(MONITORS)])
    finder.run_script(str(ENTRY))
    files = {ENTRY}
    for name, module in finder.modules.items():
        if name.partition(".")[0] == PACKAGE and module.__file__:
            files.add(Path(module.__file__))
    return sorted(files)


def lay_out(folder: Path) -> None:
    """Put all that is built into a folder."""
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / "agent" / name, folder)
    shutil.copy(ROOT / "LICENSE", folder)
    said = (ROOT / "extension" / "warpbook" / "_version.py").read_text()
    version = re.search(r'^__version__ = "(.+)"$', said, re.MULTILINE)
    if version is None:
        sys.exit("extension/warpbook/_version.py names no version")
    (folder / "VERSION").write_text(version[1])
    for file in [*sources(), MONITORS / PACKAGE / "py.typed"]:
        to = folder / file.relative_to(MONITORS)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)


def main() -> None:
    """Build it."""
    parser = argparse.ArgumentParser(description="Build warpbook-agent.")
    parser.add_argument("--outdir", type=Path, default=ROOT / "dist")
    parser.add_argument("--no-isolation", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder))
        build = [sys.executable, "-m", "build", "--outdir", str(given.outdir)]
        if given.no_isolation:
            build.append("--no-isolation")
        subprocess.run([*build, folder], check=True)


if __name__ == "__main__":
    main()
