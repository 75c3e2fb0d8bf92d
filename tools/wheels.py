"""Build all distributions of this tree: of each an sdist, and a wheel from it.

    python tools/wheels.py [--outdir dist] [--no-isolation]
    python tools/wheels.py --version 0.2.0      write a new version into all files
    python tools/wheels.py --sizes [dist]       install them from PyPI, and print MB

Each has its project file beside its package; `PROJECTS` has them in the order in
which they need one another.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: folder of a project: its distribution
PROJECTS = {
    "monitors/warpbook_monitors": "warpbook-monitors",
    "monitors/warpbook_profiler": "warpbook-profiler",
    "labs": "warpbook-labs",
    ".": "warpbook",
    "extension/warpbook_hub": "warpbook-hub",
}
VERSION = ROOT / "monitors" / "warpbook_monitors" / "_version.py"
#: what is measured by `--sizes`
INSTALLED = (
    "warpbook",
    "warpbook[lab]",
    "warpbook-monitors[gpu]",
    "warpbook-profiler",
    "warpbook-labs",
    "warpbook-hub",
)


def build(project: str, outdir: Path, options: list[str]) -> None:
    """Build what a project ships; files that an older build noted are forgotten."""
    folder = ROOT / project
    for egg_info in folder.glob("*.egg-info"):
        shutil.rmtree(egg_info)
    command = [sys.executable, "-m", "build", "--outdir", str(outdir), *options]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{PROJECTS[project]}: {done.stdout}{done.stderr}")
    print(f"{PROJECTS[project]}: {done.stdout.splitlines()[-1]}", flush=True)


def write_version(version: str) -> None:
    """Write a version into every project file, `_version.py` and package.json."""
    files = [ROOT / project / "pyproject.toml" for project in PROJECTS]
    files += [ROOT / "setup.cfg", ROOT / "frontend" / "package.json", VERSION]
    named = (
        r'(^version = "?|^__version__ = "|^  "version": "|warpbook[][\w,-]*==)[\w.]+'
    )
    for file in files:
        text = re.sub(named, rf"\g<1>{version}", file.read_text(), flags=re.MULTILINE)
        file.write_text(text)


def size(requirement: str, dist: Path) -> str:
    """Install a requirement into an empty environment: its packages, and MB on disk."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=False, symlinks=True)
        pip = [sys.executable, "-m", "pip", f"--python={folder}/bin/python", "install"]
        command = [*pip, "-q", f"--find-links={dist}", requirement]
        subprocess.run(command, check=True)
        files = [path for path in Path(folder).rglob("*") if not path.is_symlink()]
        count = sum(path.suffix == ".dist-info" for path in files)
        size_mb = sum(path.stat().st_size for path in files if path.is_file()) / 1e6
    return f"{requirement:24} {count:4} distributions {size_mb:8.1f} MB"


def main() -> None:
    """Build, or do what an option says."""
    parser = argparse.ArgumentParser(description="Build all distributions.")
    parser.add_argument("--outdir", type=Path, default=ROOT / "dist")
    parser.add_argument("--no-isolation", action="store_true")
    parser.add_argument("--version")
    parser.add_argument("--sizes", type=Path, metavar="DIST")
    options = parser.parse_args()
    if options.version:
        write_version(options.version)
    elif options.sizes:
        for requirement in INSTALLED:
            print(size(requirement, options.sizes), flush=True)
    else:
        isolation = ["--no-isolation"] if options.no_isolation else []
        with ThreadPoolExecutor() as pool:
            jobs = [
                pool.submit(build, project, options.outdir, isolation)
                for project in PROJECTS
            ]
        for job in jobs:
            job.result()


if __name__ == "__main__":
    main()
