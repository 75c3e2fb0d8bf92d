"""The programs that tests start: compiler, browser, proxy, promtool, PostgreSQL.

The tests find them in `.cache/bin`, wherever they really are.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from setup_steps import (
    PYTHON,
    ROOT,
    TEST_PROGRAMS,
    apt_install,
    apt_unpack,
    once,
    run,
    say,
    which,
)

#: servers that come with Debian's packages of these names, or `munge`
SLURM = ("slurmctld", "slurmd", "munged")


def install() -> None:
    """Have all of them, installing what is missing."""
    compiler()
    chromium()
    proxy()
    promtool()
    postgres()


def compiler() -> None:
    """Have a C compiler with headers; the stub of NVML is written in C."""
    probe = ["cc", "-E", "-include", "stdio.h", "-x", "c", "/dev/null"]
    if which("cc") and subprocess.run(probe, capture_output=True).returncode == 0:
        return
    apt_install("the tests need a C compiler", "gcc", "libc6-dev")


def chromium() -> None:
    """Have a Chromium that runs headless: installed, Debian's, or Playwright's."""
    link = TEST_PROGRAMS / "chromium"
    if _is_browser(link):
        return
    browser = _installed_browser()
    if not browser and _os_id() == "debian":
        apt_install("the tests need Chromium", "chromium", "fonts-dejavu-core")
        browser = _installed_browser()
    if not browser:
        say("fetching Playwright's own Chromium; its libraries may need sudo")
        with_libraries = ["--with-deps"] if shutil.which("apt-get") else []
        run(PYTHON, "-m", "playwright", "install", *with_libraries, "chromium")
        browser = _playwright_browser()
    _link(link, browser)


def proxy() -> None:
    """Have the proxy that JupyterHub starts."""
    prefix = ROOT / ".cache" / "proxy"
    program = prefix / "node_modules" / ".bin" / "configurable-http-proxy"
    wanted = "configurable-http-proxy@5"

    def install_proxy() -> None:
        say(f"installing {wanted} for the hub's tests")
        run("npm", "install", "--no-fund", "--no-audit", "--prefix", prefix, wanted)
        _link(TEST_PROGRAMS / program.name, program)

    once("proxy", wanted, [TEST_PROGRAMS / program.name], install_proxy)


def promtool() -> None:
    """Have Prometheus' own checker of metrics: installed, or out of Debian's package.

    The package is only unpacked: installing it would start a server.
    """
    link = TEST_PROGRAMS / "promtool"
    if link.exists():
        return
    program = which("promtool")
    if not program:
        folder = ROOT / ".cache" / "prometheus"
        apt_unpack("the tests need promtool", "prometheus", folder)
        program = str(folder / "usr" / "bin" / "promtool")
    _link(link, Path(program))


def postgres() -> None:
    """Have a PostgreSQL server's programs; the tests start servers of their own."""
    if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        apt_install("the hub's tests need PostgreSQL", "postgresql")


def slurm() -> None:
    """Have a Slurm's programs; its tests start one of their own."""
    if not all(Path(f"/usr/sbin/{name}").exists() for name in SLURM):
        packages = ("slurmctld", "slurmd", "slurm-client", "munge")
        apt_install("these tests need Slurm", *packages)


def _installed_browser() -> Path | None:
    """A browser on PATH that runs.

    Ubuntu's `chromium` starts a snap, which can't see the tests' folders (or is
    not there at all and only says so).
    """
    for name in ("chromium", "chromium-browser", "google-chrome"):
        program = which(name)
        if program and "snap" not in Path(program).resolve().parts:
            if b"snap" not in Path(program).read_bytes()[:4096] and _is_browser(
                program
            ):
                return Path(program)
    return None


def _is_browser(program: str | Path) -> bool:
    try:
        completed = subprocess.run(
            [program, "--version"], capture_output=True, timeout=60
        )
    except OSError:
        return False
    return completed.returncode == 0 and b"Chrom" in completed.stdout


def _playwright_browser() -> Path:
    ask = (
        "from playwright.sync_api import sync_playwright as start\n"
        "with start() as playwright: print(playwright.chromium.executable_path)"
    )
    completed = subprocess.run([PYTHON, "-c", ask], capture_output=True, check=True)
    return Path(completed.stdout.decode().strip())


def _os_id() -> str:
    lines = Path("/etc/os-release").read_text().splitlines()
    return next((line[3:].strip('"') for line in lines if line.startswith("ID=")), "")


def _link(at: Path, to: Path) -> None:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.unlink(missing_ok=True)
    at.symlink_to(to)
