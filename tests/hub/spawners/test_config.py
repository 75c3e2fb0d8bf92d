"""What `warpbook hub config` writes and refuses."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from traitlets.config.loader import PyFileConfigLoader

from tests.hub.spawners.site import COMMON, KUBE, SLURM, config_of, written
from warpbook.cli.main import main
from warpbook_hub.spawners.site_files import CONFIG, JOB, MANIFESTS, VALUES

UUID = "GPU-01234567-89ab-cdef-0123-456789abcdef"
SYSTEMD = ("--spawner", "systemd", "--gpu", f"{UUID}=/dev/nvidia0")
WHOLE = ("--gpu", "whole")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ((*KUBE, *WHOLE), {CONFIG, MANIFESTS, VALUES}),
        ((*SLURM, *WHOLE), {CONFIG, JOB}),
        (SYSTEMD, {CONFIG}),
    ],
)
def test_no_file_is_overwritten(
    options: tuple[str, ...],
    names: set[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = written(tmp_path / "new" / "folder", *options)
    assert {file.name for file in folder.iterdir()} == names
    for name in names - {CONFIG}:
        (folder / name).unlink()
    (folder / CONFIG).write_text("mine")
    again = ["hub", "config", *COMMON, *options, "--output", str(folder)]
    assert main(again) == 1
    assert "is there already" in capsys.readouterr().err
    # all or none
    assert [file.name for file in folder.iterdir()] == [CONFIG]
    assert (folder / CONFIG).read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--spawner", "slurm", *WHOLE), "needs --partition"),
        (("--spawner", "kube", *WHOLE), "needs --image"),
        ((*SLURM, *WHOLE, "--image", "x"), "--image is of --spawner kube"),
        ((*KUBE, *WHOLE, "--partition", "x"), "--partition is of --spawner slurm"),
        ((*KUBE, *WHOLE, "--folder", "/x"), "the service is a pod"),
        ((*KUBE, "--gpu", "h100"), "1g.10gb"),
        ((*SLURM, "--gpu", "gpu:8"), "a type of gres.conf"),
        ((*SLURM, *WHOLE, *WHOLE), "twice"),
        ((*SLURM, *WHOLE, "--time-limit", "long"), "--time-limit is such as"),
        ((*SLURM, *WHOLE, "--partition", "a\n#SBATCH"), "--partition is such as"),
        ((*SLURM, *WHOLE, "--title=-x"), "--title is such as"),
        ((*SLURM, *WHOLE, "--title", "a\x85b"), "--title is such as"),
        ((*SLURM, *WHOLE, "--service-user", "nobody-here"), "useradd --system"),
        ((*SLURM, *WHOLE, "--cpus", "0"), "--cpus is 1 to"),
        ((*SLURM, *WHOLE, "--hub-url", "hub.example.org"), "--hub-url is such as"),
        ((*KUBE, *WHOLE, "--namespace", "My Hub"), "--namespace is such as"),
        (("--spawner", "systemd", *WHOLE), "nvidia-smi -L"),
        (("--spawner", "systemd", "--gpu", f"{UUID}=/etc/passwd"), "nvidia-smi -L"),
        (
            (*SYSTEMD, "--gpu", f"GPU-{'a' * 8}{UUID[12:]}=/dev/nvidia0"),
            "/dev/nvidia0 is of another one",
        ),
    ],
)
def test_what_a_site_must_decide_is_asked_for(
    options: tuple[str, ...],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "files"
    assert main(["hub", "config", *COMMON, *options, "--output", str(folder)]) == 1
    assert words in capsys.readouterr().err
    assert not folder.exists()


def test_a_title_is_data_in_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    title = """GPU's "best" $(HOME) ${x} {{y}} #1: Zürich 😀 \\n"""
    options = ("--title", title)
    config = config_of(written(tmp_path / "slurm", *SLURM, *WHOLE, *options))
    (service,) = config.JupyterHub.services.get_value([])
    assert title in service["command"]
    files = written(tmp_path / "kube", *KUBE, *WHOLE, *options)
    manifests = list(yaml.safe_load_all((files / MANIFESTS).read_text("utf-8")))
    (container,) = manifests[1]["spec"]["template"]["spec"]["containers"]
    # Kubernetes makes one of two, and else would put a variable there
    assert title in [word.replace("$$", "$") for word in container["command"]]


@pytest.mark.parametrize("is_before", [True, False])
def test_the_sites_own_settings_stay(is_before: bool, tmp_path: Path) -> None:
    written(tmp_path, *SYSTEMD)
    own = """
c.JupyterHub.services.append({"name": "culler"})
c.JupyterHub.load_roles.append({"name": "culler", "services": ["culler"]})
c.Spawner.environment.update({"OWN": "kept"})
"""
    load = f'\nload_subconfig("{tmp_path / CONFIG}")\n'
    site = tmp_path / "jupyterhub_config.py"
    site.write_text(own + load if is_before else load + own)
    config = PyFileConfigLoader(str(site)).load_config()
    names = {
        key: {one["name"] for one in config.JupyterHub[key].get_value([])}
        for key in ("services", "load_roles")
    }
    assert names["services"] == {"culler", "warpbook"}
    assert names["load_roles"] == {"culler", "user", "server", "warpbook-service"}
    assert config.Spawner.environment.get_value({}).keys() == {
        "OWN",
        "WARPBOOK_HUB_URL",
    }


def test_a_full_disk_leaves_no_half_of_the_files(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = ["hub", "config", *COMMON, *KUBE, *WHOLE, "--output", str(tmp_path)]
    # half of a module that is compiled now would be kept for all
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    # what is written beyond it fails, as on a disk that is full
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_500, limit[1]))
    try:
        assert main(command) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert "File too large" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_it_needs_nothing_of_a_hub() -> None:
    """The files may be written where no JupyterHub is installed."""
    code = (
        "import sys; sys.modules['jupyterhub'] = sys.modules['sqlalchemy'] = None\n"
        "from warpbook.cli.main import make_parser\n"
        "import warpbook_hub.spawners.site_files\n"
        "print(make_parser(['hub']).parse_args(['hub']).run.__module__)\n"
    )
    given = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        text=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    # and the hub's own command is as before
    assert given.stdout.strip() == "warpbook_hub.cli.hub"
