"""`warpbook-agent`, as a node without Jupyter meets it.

The wheel is installed, without network, into an environment that has only what its
metadata asks for: what it imports beyond that fails here.
"""

import configparser
import os
import re
import subprocess
import sys
import time
import urllib.request
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.programs import free_port
from tests.stub_nvml import StubNvml
from warpbook import __version__

ROOT = Path(__file__).parent.parent
PROJECT = (ROOT / "agent" / "pyproject.toml").read_text()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build as `make wheel` does, from the sdist."""
    folder = tmp_path_factory.mktemp("agent")
    build = [sys.executable, str(ROOT / "tools" / "agent_wheel.py")]
    build += ["--no-isolation", "--outdir", str(folder)]
    subprocess.run(build, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def node(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what its metadata asks for, and no more."""
    prefix = tmp_path_factory.mktemp("node")
    venv.create(prefix, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(prefix / "bin" / "python")]
    offline = ["install", "-q", "--no-index", "--no-deps", str(wheel)]
    subprocess.run([*pip, *offline], check=True)
    [site_packages] = prefix.glob("lib/python3*/site-packages")
    [installed] = metadata.distributions(
        name="warpbook-agent", path=[str(site_packages)]
    )
    for requirement in installed.requires or []:
        lend(requirement, site_packages)
    return prefix


def lend(requirement: str, site_packages: Path) -> None:
    """Put a distribution of ours, and what it needs, into another environment."""
    name = re.split(r"[^\w.-]", requirement)[0]
    ours = metadata.distribution(name)
    for file in ours.files or []:
        top = file.parts[0]
        if top in ("..", "__pycache__") or (site_packages / top).exists():
            continue
        (site_packages / top).symlink_to(ours.locate_file(top))
    for needed in ours.requires or []:
        if "extra ==" not in needed:
            lend(needed, site_packages)


def python(node: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code there, with nothing of ours in reach."""
    return subprocess.run(
        [node / "bin" / "python", "-c", code],
        env={"HOME": str(node), "PATH": str(node / "bin")},
        cwd=node,
        capture_output=True,
        text=True,
    )


def test_it_has_the_version_and_the_bounds_of_warpbook() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    ours = set(config["options"]["install_requires"].split("\n"))
    [requirements] = re.findall(r"^dependencies = \[(.*?)^\]", PROJECT, re.M | re.S)
    dependencies = re.findall(r'"(.+?)"', requirements)
    assert dependencies and set(dependencies) <= ours


def test_the_wheel_is_small_and_has_no_traces(wheel: Path) -> None:
    assert wheel.name.startswith(f"warpbook_agent-{__version__}-")
    names = zipfile.ZipFile(wheel).namelist()
    assert "warpbook_monitors/agent.py" in names
    assert [name for name in names if "/trace/" in name or "/archive/" in name] == []
    assert wheel.stat().st_size < 150_000


@pytest.mark.parametrize("module", ["jupyter_server", "bokeh", "ipywidgets", "numpy"])
def test_the_node_has_no(node: Path, module: str) -> None:
    done = python(node, f"import {module}")
    assert "ModuleNotFoundError" in done.stderr


def test_every_module_of_the_wheel_can_be_imported(node: Path, wheel: Path) -> None:
    names = [
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in zipfile.ZipFile(wheel).namelist()
        if name.endswith(".py")
    ]
    done = python(node, f"import {', '.join(names)}")
    assert done.returncode == 0, done.stderr


def test_the_agent_serves_the_gpus_of_a_node_without_jupyter(
    node: Path, stub_nvml: StubNvml
) -> None:
    port = free_port()
    agent = subprocess.Popen(
        [node / "bin" / "warpbook-agent", f"--port={port}"],
        env={**stub_nvml.env, "HOME": str(node), "PATH": os.defpath},
        cwd=node,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert agent.stdout is not None
        assert "Serving" in agent.stdout.readline()
        values: dict[str, float] = {}
        deadline_s = time.monotonic() + 60
        while "warpbook_gpu_sm_active_ratio" not in values:
            assert time.monotonic() < deadline_s, values
            url = f"http://127.0.0.1:{port}/metrics"
            with urllib.request.urlopen(url, timeout=60) as answer:
                families = text_string_to_metric_families(answer.read().decode())
            values = {s.name: s.value for f in families for s in f.samples}
            time.sleep(0.1)
        assert values["warpbook_gpu_power_watts"] > 0
        assert values["warpbook_last_collect_success"] == 1
        agent.terminate()
        assert agent.wait(timeout=60) == 0
    finally:
        agent.kill()
        agent.wait()
        if agent.stdout is not None:
            agent.stdout.close()
