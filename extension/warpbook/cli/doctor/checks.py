"""What the doctor looks at, one function a part, each telling what it found."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from importlib import metadata, util
from pathlib import Path

import msgspec
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_core.paths import jupyter_config_dir, jupyter_config_path, jupyter_path
from jupyter_server.extension.config import ExtensionConfigManager
from jupyter_server.extension.manager import ExtensionPackage

from warpbook.cli.doctor.archive_checks import archive_checks
from warpbook.cli.doctor.check import Check, shown
from warpbook.cli.doctor.neighbours import neighbour_check
from warpbook.cli.doctor.stall_check import stall_check
from warpbook.protocol import ENV_INGEST_SECRET, ENV_INGEST_URL, PROTOCOL_VERSION
from warpbook_monitors._version import __version__
from warpbook_monitors.alerts.rules import FILE_NAME, read_rules
from warpbook_monitors.errors import RulesError
from warpbook_monitors.frames import Absence, Device
from warpbook_monitors.labels import device_label
from warpbook_monitors.open_sources import live_sources
from warpbook_monitors.plain_text import printable
from warpbook_monitors.python_path import NOWHERE
from warpbook_monitors.sampling.sampler import Sampler

#: a GPU may be there, and something keeps warpbook from it
_BROKEN_REASONS = {"driver_not_loaded", "version_mismatch", "no_permission", "lost"}
#: importing torch from a cold disk takes tens of seconds
_CHILD_TIMEOUT_S = 120
#: entry points: what other distributions look at, each a function like these
_GROUP = "warpbook.checks"
_MARKS = {"ok": "ok     ", "absent": "absent ", "broken": "BROKEN "}


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="show what works here, what does not, and what to do",
        description="Tell what works here, what does not, and what to do. "
        "The exit status is 1 if something is broken; what is merely not there "
        "(no GPU, no torch) is listed and is no failure.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check everything; print as it comes, or all at once as JSON."""
    checks: list[Check] = []
    for check in all_checks():
        checks.append(check)
        if not options.json:
            _print(check)
    usable = all(check.state != "broken" for check in checks)
    if options.json:
        encoded = msgspec.json.encode({"usable": usable, "checks": checks})
        sys.stdout.write(msgspec.json.format(encoded.decode(), indent=2) + "\n")
    else:
        print(
            "\nwarpbook is usable here."
            if usable
            else "\nSomething is broken; see the lines marked BROKEN."
        )
    return 0 if usable else 1


def _print(check: Check) -> None:
    print(f"{_MARKS[check.state]} {check.what}: {printable(check.message)}", flush=True)
    if check.remedy:
        print(f"         -> {printable(check.remedy)}", flush=True)


def all_checks() -> Iterator[Check]:
    """Look at everything, cheapest first."""
    yield Check("Python", "ok", f"{platform.python_version()} at {_python()}")
    yield Check("warpbook", "ok", f"{__version__}, protocol {PROTOCOL_VERSION}")
    yield from _gpus()
    yield stall_check()
    yield _server_extension()
    yield _labextension()
    yield _bokeh()
    yield _alert_rules()
    yield from archive_checks()
    for point in metadata.entry_points(group=_GROUP):
        yield from point.load()()
    yield from neighbour_check()
    yield _torch()
    yield from _kernels()
    yield _ingest()


def _gpus() -> Iterator[Check]:
    sampler = Sampler(live_sources())
    sampler.open()
    sampler.close()
    gpus = [_gpu(device) for device in sampler.devices if device.kind == "gpu"]
    messages = "\n".join(gpu.message for gpu in gpus)
    for absence in sampler.absences:
        # a GPU without GPM says so itself
        if not (absence.what.startswith("GPM on ") and absence.message in messages):
            yield _absence(absence)
    yield from gpus


def _absence(absence: Absence) -> Check:
    # without GPM a GPU is still useful; without NVML there is none to see
    broken = absence.what == "NVML" and absence.reason in _BROKEN_REASONS
    return Check(
        absence.what, "broken" if broken else "absent", absence.message, absence.remedy
    )


def _gpu(device: Device) -> Check:
    counters = [metric for metric in device.metrics if metric.name == "sm_active_ratio"]
    if counters and counters[0].state == "ok":
        gpm = "with GPM (SM, tensor, DRAM, PCIe)"
    else:
        why = counters[0].why if counters else "this GPU has none"
        gpm = f"without GPM: {why}"
    what = device_label(device, [device])
    is_read = any(metric.state == "ok" for metric in device.metrics)
    if device.index is None:
        words = f"read by another package's source, as {device.id}"
        if is_read:
            return Check(what, "ok", words)
        why = "no figure of this GPU can be read here"
        return Check(
            what, "absent", f"{words}: {why}", "Ask whoever made that package."
        )
    if not is_read:
        return Check(
            what,
            "absent",
            f"{device.name}: no figure of this GPU can be read here, {gpm}",
            "Its driver reports nothing through NVML; on a Jetson, see tegrastats.",
        )
    return Check(what, "ok", f"{device.name}, {gpm}")


def _server_extension() -> Check:
    what = "Server extension"
    manager = ExtensionConfigManager(read_config_path=jupyter_config_path())
    enabled = manager.get_jpserver_extensions().get("warpbook")
    if not enabled:
        return Check(
            what,
            "broken",
            "It is switched off." if enabled is False else "It is not enabled.",
            f"Run: {_python()} -m jupyter server extension enable warpbook",
        )
    try:
        ExtensionPackage(name="warpbook", enabled=True).validate()
    except Exception as error:  # noqa: BLE001 - whatever breaks its import is the news
        return Check(what, "broken", f"It can't be loaded: {error}", _reinstall())
    return Check(what, "ok", "enabled")


def _labextension() -> Check:
    what = "JupyterLab extension"
    try:
        jupyterlab = metadata.version("jupyterlab")
    except metadata.PackageNotFoundError:
        return Check(
            what,
            "absent",
            "JupyterLab is not installed for this Python.",
            f"Where JupyterLab is to run: {_pip()} 'warpbook[lab]'",
        )
    for folder in jupyter_path("labextensions"):
        try:
            package = json.loads(Path(folder, "warpbook", "package.json").read_text())
            version = str(package["version"])
        except (OSError, ValueError, KeyError):
            continue
        if version == __version__:
            return Check(what, "ok", f"{version}, in JupyterLab {jupyterlab}")
        return Check(
            what,
            "broken",
            f"It is {version}, and warpbook is {__version__}.",
            _reinstall(),
        )
    return Check(what, "broken", "It is not installed, so nothing shows.", _reinstall())


def _bokeh() -> Check:
    spec = util.find_spec("bokeh")
    if spec is None or spec.origin is None:
        return Check("Bokeh", "broken", "It is not installed.", f"Run: {_pip()} bokeh")
    script = Path(spec.origin).parent / "server" / "static" / "js" / "bokeh.min.js"
    if not script.is_file():
        return Check(
            "Bokeh",
            "broken",
            "This Bokeh holds no BokehJS, so reports can't be drawn.",
            f"Run: {_pip()} --force-reinstall bokeh",
        )
    return Check("Bokeh", "ok", metadata.version("bokeh"))


def _alert_rules() -> Check:
    what = "Alert rules"
    path = Path(jupyter_config_dir(), FILE_NAME)
    try:
        rules = read_rules(path)
    except RulesError as error:
        return Check(
            what,
            "broken",
            f"{shown(str(path))} is refused: {error.reason}",
            "Mend it there; until then the built-in rules hold.",
        )
    count = sum(1 for _ in rules.enabled())
    where = f"with {shown(str(path))}" if path.exists() else "built in"
    return Check(what, "ok", f"{count} rules, {where}")


def _torch() -> Check:
    """Ask a child: torch takes long to import, and may crash."""
    if util.find_spec("torch") is None:
        return Check(
            "torch",
            "absent",
            "It is not installed for this Python, so %%gpuprof has nothing to profile.",
            f"Run: {_pip()} torch",
        )
    ask = (
        "import json, torch; print(json.dumps([torch.__version__, "
        "torch.version.cuda, torch.cuda.is_available()]))"
    )
    reply = _ask(sys.executable, ask)
    if isinstance(reply, str):
        return Check(
            "torch",
            "broken",
            f"It can't be imported: {reply}",
            f"Run: {_pip()} --force-reinstall torch",
        )
    version, cuda, available = reply
    if cuda is None:
        return Check("torch", "ok", f"{version}, a build without CUDA")
    sees = "sees a GPU" if available else "sees no GPU"
    return Check("torch", "ok", f"{version}, built for CUDA {cuda}, {sees}")


def _kernels() -> Iterator[Check]:
    """Ask the interpreter of each Python kernel for its warpbook."""
    for name, spec in sorted(KernelSpecManager().get_all_specs().items()):
        if spec["spec"]["language"] == "python":
            yield _kernel(name, spec["spec"]["argv"][0])


def _kernel(name: str, interpreter: str) -> Check:
    what = f"Kernel {name}"
    if not Path(interpreter).name.startswith("python"):
        return Check(
            what,
            "absent",
            f"It is started through {shown(interpreter)}, so its warpbook can't be "
            "looked at from here.",
            "Run `warpbook doctor` in its environment.",
        )
    if interpreter in ("python", "python3"):
        # Jupyter starts these with its own interpreter, whatever PATH says
        interpreter = sys.executable
    install = f"Run: {shown(interpreter)} -m pip install warpbook=={__version__}"
    ask = (
        "import json; from warpbook import __version__ as version; "
        "from warpbook.protocol import PROTOCOL_VERSION as protocol; "
        "print(json.dumps([version, protocol]))"
    )
    reply = _ask(interpreter, ask)
    if isinstance(reply, str):
        if "No module named 'warpbook" not in reply:
            return Check(what, "broken", reply, install)
        return Check(
            what,
            "absent",
            "It has no warpbook; the dashboard works, %gpu and %%gpuprof do not.",
            install,
        )
    version, protocol = reply
    if protocol != PROTOCOL_VERSION:
        return Check(
            what,
            "broken",
            f"Its warpbook {version} speaks protocol {protocol}, "
            f"this one {PROTOCOL_VERSION}.",
            install,
        )
    return Check(what, "ok", f"warpbook {version}, protocol {protocol}")


def _ingest() -> Check:
    what = "Report ingest"
    url, secret = os.environ.get(ENV_INGEST_URL), os.environ.get(ENV_INGEST_SECRET)
    if not url or not secret:
        return Check(
            what,
            "absent",
            "Only a notebook's kernel has it, to hand its reports to the dashboard.",
        )
    request = urllib.request.Request(
        f"{url}/v1/state", headers={"Authorization": f"Bearer {secret}"}
    )
    try:
        # loopback: a proxy of the environment must not see the secret
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=5) as answer:
            version = json.load(answer)["version"]
    except (OSError, ValueError, KeyError) as error:
        return Check(
            what,
            "broken",
            f"{url} does not answer as it should: {error}",
            "Restart the kernel, so that it is given the present address.",
        )
    return Check(what, "ok", f"warpbook {version} at {url}")


def _ask(interpreter: str, program: str) -> list[object] | str:
    """Run a line of Python elsewhere; its JSON, or in words why there is none."""
    try:
        # at the root, where no folder of the person's shadows a package
        done = subprocess.run(
            [interpreter, "-c", program],
            capture_output=True,
            text=True,
            timeout=_CHILD_TIMEOUT_S,
            cwd=NOWHERE,
        )
        if done.returncode == 0:
            answer: list[object] = json.loads(done.stdout.strip().splitlines()[-1])
            return answer
    except subprocess.TimeoutExpired:
        return f"no answer within {_CHILD_TIMEOUT_S} s"
    except (OSError, ValueError, IndexError) as error:
        return f"{shown(interpreter)}: {error}"
    lines = done.stderr.strip().splitlines()
    return lines[-1][:300] if lines else f"it ended with status {done.returncode}"


def _python() -> str:
    return shown(sys.executable)


def _pip() -> str:
    return f"{_python()} -m pip install"


def _reinstall() -> str:
    return (
        f"Run: {_pip()} --force-reinstall --no-deps warpbook=={__version__} "
        "(in a checkout: make setup)"
    )
