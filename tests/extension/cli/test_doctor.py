import contextlib
import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.programs import free_port
from tests.server_process import server
from tests.stub_nvml import DRIVER_NOT_LOADED, NOT_SUPPORTED, function_names
from warpbook import __version__
from warpbook.cli.doctor.neighbours import Neighbour
from warpbook.protocol import PROTOCOL_VERSION
from warpbook_labs.course.store import Store


@pytest.fixture(scope="module")
def other_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix of an environment that has nothing installed."""
    prefix = tmp_path_factory.mktemp("other")
    venv.create(prefix, with_pip=False, symlinks=True)
    return prefix


@pytest.fixture
def quick_torch(tmp_path: Path) -> dict[str, str]:
    """A torch that is there at once, for what has nothing to do with the real one."""
    folder = tmp_path / "quick"
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text(
        "from types import SimpleNamespace as _Names\n"
        "__version__, version = '0', _Names(cuda=None)\n"
        "cuda = _Names(is_available=lambda: False)\n"
    )
    return {"PYTHONPATH": str(folder)}


def add_kernel(jupyter_path: Path, name: str, interpreter: Path | str) -> None:
    folder = jupyter_path / "kernels" / name
    folder.mkdir(parents=True)
    spec = {
        "argv": [str(interpreter), "-m", "ipykernel", "-f", "{connection_file}"],
        "display_name": name,
        "language": "python",
    }
    (folder / "kernel.json").write_text(json.dumps(spec))


def test_here_without_a_gpu_it_is_usable(warpbook) -> None:
    done = warpbook("doctor")
    assert done.returncode == 0, done.stdout
    assert f"ok      warpbook: {__version__}" in done.stdout
    assert "absent  NVML: The NVIDIA driver's library" in done.stdout
    assert "absent  Stall sampling: It needs an NVIDIA GPU" in done.stdout
    assert "ok      Server extension: enabled" in done.stdout
    assert f"ok      JupyterLab extension: {__version__}" in done.stdout
    assert f"ok      Kernel python3: warpbook {__version__}" in done.stdout
    assert "ok      Alert rules: 11 rules, built in" in done.stdout
    assert done.stdout.endswith("warpbook is usable here.\n")


def test_a_file_of_alert_rules_with_a_mistake_is_broken(
    warpbook, tmp_path: Path, quick_torch
) -> None:
    rules = tmp_path / "warpbook-alerts.toml"
    rules.write_text("[built_in.memory_full]\nabove_ratio = 95\n")
    done = warpbook("doctor", JUPYTER_CONFIG_DIR=str(tmp_path), **quick_torch)
    assert done.returncode == 1
    assert "BROKEN  Alert rules: " in done.stdout
    assert "warpbook-alerts.toml is refused: " in done.stdout
    assert "`$.built_in.memory_full.above_ratio`" in done.stdout


def test_each_gpu_is_told_with_gpm_or_why_not(
    warpbook, make_stub_nvml, quick_torch
) -> None:
    done = warpbook("doctor", **make_stub_nvml("h200", "a100").env, **quick_torch)
    assert done.returncode == 0, done.stdout
    assert re.search("ok      GPU 0: NVIDIA H200.*, with GPM", done.stdout)
    assert re.search("ok      GPU 1: NVIDIA A100.*, without GPM: .+", done.stdout)
    assert done.stdout.count("GPM") == 3, "with its name in the reason, and once a GPU"
    assert "absent  NVML" not in done.stdout


#: what the sampler asks for in a libcupti
CUPTI = "".join(
    f"int cuptiPCSampling{name}(void *all) {{ return 0; }}\n"
    for name in ("Enable", "Disable", "GetData", "SetConfigurationAttribute")
)
ASK = """
import sys
from pathlib import Path
from warpbook.cli.doctor.stall_check import stall_check
check = stall_check(Path(sys.argv[1]))
print(f"{check.state}: {check.message} -> {check.remedy}")
"""


@pytest.mark.parametrize(
    ("gpu", "parameters", "capabilities", "said"),
    [
        ("h200", "RmProfilingAdminOnly: 0\n", "0", "ok: available"),
        ("h200", "RmProfilingAdminOnly: 1\n", "1ffffffffff", "ok: available"),
        (
            "h200",
            "RmProfilingAdminOnly: 1\n",
            "a80425fb",
            "absent: It is not permitted",
        ),
        ("h200", None, "0", "ok: available, if the driver allows it"),
        (
            "old",
            "RmProfilingAdminOnly: 0\n",
            "0",
            "absent: It is not available on this",
        ),
    ],
)
def test_whether_stalls_can_be_sampled_is_told_with_what_to_do(
    make_stub_nvml,
    tmp_path: Path,
    gpu: str,
    parameters: str | None,
    capabilities: str,
    said: str,
) -> None:
    proc, library = tmp_path / "proc", tmp_path / "site" / "nvidia" / "cu13" / "lib"
    for folder in (proc / "self", proc / "driver" / "nvidia", library):
        folder.mkdir(parents=True)
    (proc / "self" / "status").write_text(f"Name:\tx\nCapEff:\t{capabilities}\n")
    if parameters is not None:
        (proc / "driver" / "nvidia" / "params").write_text(parameters)
    built = ["cc", "-shared", "-x", "c", "-", "-o", str(library / "libcupti.so.13")]
    subprocess.run(built, input=CUPTI, text=True, check=True)
    stub = make_stub_nvml("h200")
    if gpu == "old":
        stub.set(0, capability_major=6, capability_minor=1)
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(proc)],
        env={**os.environ, **stub.env, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(said), done.stdout
    if "not permitted" in said:
        assert "NVreg_RestrictProfilingToAdminUsers=0" in done.stdout
        assert "RmProfilingAdminOnly" in done.stdout


def test_a_gpu_of_which_nothing_can_be_read_is_not_called_well(
    warpbook, make_stub_nvml, quick_torch
) -> None:
    stub = make_stub_nvml("t4")
    stub.set(0, name=b"Orin (nvgpu)", has_ecc=0)
    identity = re.compile("HandleBy|Count|GetName|UUID|ComputeCapability|PciInfo")
    for function in function_names():
        if function.startswith("nvmlDeviceGet") and not identity.search(function):
            stub.fault(function, NOT_SUPPORTED)
    done = warpbook("doctor", **stub.env, **quick_torch)
    assert (
        "absent  GPU 0: Orin (nvgpu): no figure of this GPU can be read" in done.stdout
    )
    stub.fault("nvmlDeviceGetUtilizationRates")
    done = warpbook("doctor", **stub.env, **quick_torch)
    assert "ok      GPU 0: Orin (nvgpu)" in done.stdout


def test_a_driver_that_is_not_loaded_is_broken(
    warpbook, stub_nvml, quick_torch
) -> None:
    stub_nvml.fault("nvmlInitWithFlags", rc=DRIVER_NOT_LOADED)
    done = warpbook("doctor", **stub_nvml.env, **quick_torch)
    assert done.returncode == 1
    assert "BROKEN  NVML: " in done.stdout


#: listens as an account, at an address and a port
LISTENER = """
import os, pwd, socket, sys, time
_, user, address, port = sys.argv
os.setuid(pwd.getpwnam(user).pw_uid)
family = socket.AF_INET6 if ":" in address else socket.AF_INET
with socket.create_server((address, int(port)), family=family):
    print("listens", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts others' programs")
def test_what_other_accounts_let_everybody_reach_is_named(
    warpbook, quick_torch, tmp_path: Path
) -> None:
    theirs, six, own, mcp = (free_port() for _ in range(4))
    (tmp_path / "listener.py").write_text(LISTENER)
    server = tmp_path / "node_modules/@someone/an-mcp-server/dist/main.py"
    server.parent.mkdir(parents=True)
    server.write_text(LISTENER)
    pids = {}
    with contextlib.ExitStack() as programs:
        for port, address, user, code in (
            (theirs, "127.0.0.1", "games", ("-c", LISTENER)),
            (six, "::", "games", ("-X", "dev", "-m", "listener")),
            (own, "127.0.0.1", "root", ("-c", LISTENER)),
            # one's own is named where it usually asks for no password
            (mcp, "127.0.0.1", "root", (str(server),)),
        ):
            command = [sys.executable, *code, user, address, str(port)]
            program = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path)
            pids[port] = program.pid
            programs.enter_context(program)
            programs.callback(program.kill)
            assert program.stdout is not None
            assert program.stdout.readline() == b"listens\n"
        done = warpbook("doctor", **quick_torch)
    (named,) = (line for line in done.stdout.splitlines() if "Neighbours:" in line)
    assert named.startswith("absent  Neighbours: Anyone with an account here can reach")
    assert f"{theirs} (games, process {pids[theirs]}: python" in named
    assert f"{six} (games, process {pids[six]}: listener (python" in named
    assert f"{mcp} (root, process {pids[mcp]}: @someone/an-mcp-server (python" in named
    assert str(own) not in named
    # what a command's other words say may be secret
    assert "listens" not in named


def test_a_program_that_is_not_seen_is_named_by_its_port() -> None:
    eve = Neighbour(3001, 4_000_000, "eve", None)
    assert (
        str(eve) == "3001 (eve, a process that root sees, usually jupyter-server-mcp)"
    )
    assert eve.is_usually_open
    assert not Neighbour(41_234, 4_000_000, "eve", None).is_usually_open


def test_kernels_of_other_environments_are_asked(
    warpbook, tmp_path: Path, other_python: Path, quick_torch
) -> None:
    jupyter_path = tmp_path / "share"
    add_kernel(jupyter_path, "bare", other_python / "bin" / "python")
    add_kernel(jupyter_path, "gone", tmp_path / "deleted" / "bin" / "python")
    add_kernel(jupyter_path, "wrapped", "conda")
    [packages] = other_python.glob("lib/python3*/site-packages")
    settings = {"JUPYTER_PATH": str(jupyter_path), **quick_torch}
    done = warpbook("doctor", "--json", **settings)
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["usable"] is False
    kernels = {
        check["what"]: check
        for check in answer["checks"]
        if check["what"].startswith("Kernel")
    }
    assert kernels["Kernel python3"]["state"] == "ok"
    assert kernels["Kernel bare"]["state"] == "absent"
    assert "pip install warpbook" in kernels["Kernel bare"]["remedy"]
    assert str(other_python) in kernels["Kernel bare"]["remedy"]
    assert kernels["Kernel gone"]["state"] == "broken"
    assert "No such file" in kernels["Kernel gone"]["message"]
    assert kernels["Kernel wrapped"]["state"] == "absent"
    assert "can't be looked at" in kernels["Kernel wrapped"]["message"]


def test_a_kernel_of_another_protocol_and_an_old_labextension_are_broken(
    warpbook, tmp_path: Path, other_python: Path, quick_torch
) -> None:
    jupyter_path = tmp_path / "share"
    add_kernel(jupyter_path, "older", other_python / "bin" / "python")
    [packages] = other_python.glob("lib/python3*/site-packages")
    (packages / "warpbook").mkdir()
    (packages / "warpbook" / "__init__.py").write_text("__version__ = '0.0.1'")
    (packages / "warpbook" / "protocol.py").write_text("PROTOCOL_VERSION = 0")
    labextension = jupyter_path / "labextensions" / "warpbook"
    labextension.mkdir(parents=True)
    (labextension / "package.json").write_text('{"version": "0.0.1"}')
    done = warpbook("doctor", JUPYTER_PATH=str(jupyter_path), **quick_torch)
    assert done.returncode == 1
    assert (
        f"BROKEN  Kernel older: Its warpbook 0.0.1 speaks protocol 0, "
        f"this one {PROTOCOL_VERSION}." in done.stdout
    )
    assert "BROKEN  JupyterLab extension: It is 0.0.1" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_an_extension_that_is_switched_off_is_broken(
    warpbook, tmp_path: Path, quick_torch
) -> None:
    config = tmp_path / "etc" / "jupyter_server_config.d"
    config.mkdir(parents=True)
    switched_off = {"ServerApp": {"jpserver_extensions": {"warpbook": False}}}
    (config / "warpbook.json").write_text(json.dumps(switched_off))
    done = warpbook("doctor", JUPYTER_CONFIG_PATH=str(config.parent), **quick_torch)
    assert done.returncode == 1
    assert "BROKEN  Server extension: It is switched off." in done.stdout
    assert "server extension enable warpbook" in done.stdout


def archive_of(text: str) -> str:
    (line,) = re.findall(r"^.{7} Archive: .*$", text, re.MULTILINE)
    return line


def test_what_is_kept_is_told_and_nothing_is_created(
    warpbook, home: Path, quick_torch
) -> None:
    folder = home / ".local" / "share" / "warpbook"
    done = warpbook("doctor", **quick_torch)
    assert archive_of(done.stdout).startswith("absent  Archive: No server has kept")
    assert "absent  Submissions to labs: There are none" in done.stdout
    assert not folder.exists()
    Store(folder / "labs.db")
    with server(home) as running:
        path = next((folder / "archive").glob("*/archive.db"))
        running.get("warpbook/api/v1/state")
        there = {file for file in folder.rglob("*") if not file.name.endswith("-shm")}
        done = warpbook("doctor", **quick_torch)
        assert done.returncode == 0, done.stdout
        pid = running.process.pid
        line = archive_of(done.stdout)
        assert line.startswith("ok ")
        assert f"process {pid} keeps the history" in line
        assert "format 1" in line and "GB are free" in line
        assert "ok      Submissions to labs: ~/.local/share/warpbook" in done.stdout
        after = {file for file in folder.rglob("*") if not file.name.endswith("-shm")}
        assert after == there
    assert "no server keeps" in archive_of(warpbook("doctor", **quick_torch).stdout)

    content = bytearray(path.read_bytes())
    path.write_bytes(content[:60] + (9).to_bytes(4, "big") + content[64:])
    done = warpbook("doctor", **quick_torch)
    assert done.returncode == 1
    assert archive_of(done.stdout).startswith("BROKEN  Archive: ~/")
    assert "-> Update warpbook, or name another folder" in done.stdout
    path.write_bytes(content[:4096] + b"\xff" * 4096 + content[8192:])
    done = warpbook("doctor", **quick_torch)
    assert done.returncode == 1
    assert "can't be read" in archive_of(done.stdout)
    assert "-> Start a server, which mends what it can" in done.stdout
