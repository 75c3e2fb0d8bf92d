"""Sources that other packages bring: one that works, and those that do not."""

import csv
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import ROOT
from tests.server_process import server
from tests.stub_nvml import StubNvml

EXAMPLE = ROOT / "docs" / "examples" / "source"
GPU = "gpu:drm:card0"

#: faults by the entry point's name
FAULTY = """
import time
from warpbook_monitors.errors import Unavailable
from warpbook_monitors.frames import Device
from warpbook_monitors.metrics import GPU
from warpbook_monitors.source import Discovery

class Hangs:
    def open(self):
        time.sleep(600)

class Raises:
    def open(self):
        raise SystemExit("a defect")

class Unreasoned:
    def open(self):
        raise Unavailable("X", "no_hardware", "nothing")

class Unnumbered:
    def open(self):
        facts = {"memory_total_bytes": float("nan")}
        made = ("gpu", "G", None, "live", (), facts)
        self.device = Device("gpu:unnumbered:0", *made)
        return Discovery([self])

class Strange:
    def open(self):
        device = Device("gpu:0", "gpu", "G", None, "live", ())
        self.device = device
        return Discovery([self])

class Nonsense:
    def open(self):
        return Discovery([self])
    @property
    def device(self):
        metric = GPU["power_watts"].on_device()
        return Device("gpu:nonsense:0", "gpu", "Nonsense", 7, "live", (metric,))
    def read(self, now_ns):
        return (float("nan"),)
    def rest(self):
        raise RuntimeError("a defect")
    def close(self):
        time.sleep(600)
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example, installed, and a package of faulty sources."""
    folder = tmp_path_factory.mktemp("packages")
    # what is built is left beside the sources
    copy = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("source") / "example")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index"]
    command += ["--no-deps", "--no-build-isolation", "--target", str(folder)]
    subprocess.run([*command, str(copy)], check=True)
    return folder


def add_faulty(folder: Path, *names: str) -> None:
    (folder / "faulty.py").write_text(FAULTY)
    info = folder / "faulty-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1\n")
    lines = [f"{name.lower()} = faulty:{name}" for name in names]
    (info / "entry_points.txt").write_text("\n".join(["[warpbook.sources]", *lines]))


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """What the driver tells of one GPU, in files."""
    card = tmp_path / "drm" / "card0" / "device"
    card.mkdir(parents=True)
    (card / "gpu_busy_percent").write_text("37\n")
    (card / "mem_info_vram_total").write_text(str(16 << 30))
    (card / "mem_info_vram_used").write_text(str(4 << 30))
    return card


def seen_by(folders: list[Path], card: Path) -> dict[str, str]:
    ours = [ROOT / name for name in ("extension", "labs", "monitors")]
    path = os.pathsep.join(map(str, [*ours, *folders]))
    return {"PYTHONPATH": path, "DRM_ROOT": str(card.parent.parent)}


def by_device(hello: dict, frame: dict) -> dict[str, dict]:
    return {hello["devices"][it["device"]]["id"]: it for it in frame["readings"]}


def subscribed(server):
    view = server.view()
    hello = view.next("hello")
    view.send({"type": "subscribe", "protocol": hello["protocol"], "rate_hz": 10})
    return view, hello


def test_an_installed_package_brings_a_gpu_to_stream_history_and_alerts(
    packages: Path, card: Path, tmp_path: Path, stub_nvml: StubNvml
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("[built_in.memory_full]\nfor_s = 0\n")
    with server(
        tmp_path,
        stub_nvml,
        f"--WarpbookApp.alert_rules={rules}",
        variables=seen_by([packages], card),
    ) as jupyter:
        view, hello = subscribed(jupyter)
        assert [it["kind"] for it in hello["devices"]][:2] == ["gpu", "gpu"]
        ours = next(it for it in hello["devices"] if it["id"] == GPU)
        states = {it["name"]: it.get("state", "ok") for it in ours["metrics"]}
        assert states["gpu_utilization_ratio"] == "ok"
        assert states["power_watts"] == "not_supported", "a state, not zero"
        while (reading := by_device(hello, view.next("frame"))[GPU])["state"] != "ok":
            pass
        assert reading["values"][:3] == [0.37, 4 << 30, None]
        (card / "mem_info_vram_used").write_text(str(16 << 30))
        while not (alerts := view.next("alerts")["alerts"]):
            pass
        assert [(it["device"], it["rule"]) for it in alerts] == [(GPU, "memory_full")]
        table = jupyter.get("warpbook/api/v1/history/export", format="csv").text
        rows = list(csv.DictReader(io.StringIO(table.lstrip("\ufeff"))))
        kept = {row[f"{GPU} gpu_utilization_ratio"] for row in rows}
        assert "0.37" in kept
        (card / "gpu_busy_percent").unlink()
        while by_device(hello, view.next("frame"))[GPU]["state"] != "lost":
            pass


def test_sources_that_hang_raise_or_give_nonsense_say_so_and_break_nothing(
    packages: Path, card: Path, tmp_path: Path, stub_nvml: StubNvml
) -> None:
    faulty = tmp_path / "faulty"
    faulty.mkdir()
    add_faulty(
        faulty, "Hangs", "Raises", "Unreasoned", "Unnumbered", "Strange", "Nonsense"
    )
    folders = [packages, faulty]
    with server(tmp_path, stub_nvml, variables=seen_by(folders, card)) as jupyter:
        view, hello = subscribed(jupyter)
        absences = {it["what"]: it["message"] for it in hello["absences"]}
        assert absences["hangs"] == "It did not open within 3 s."
        assert "SystemExit('a defect')" in absences["raises"]
        assert "ids that begin with gpu:strange:" in absences["strange"]
        assert "ValidationError" in absences["unreasoned"]
        assert "nan as memory_total_bytes" in absences["unnumbered"]
        while True:
            readings = by_device(hello, view.next("frame"))
            states = {name: it["state"] for name, it in readings.items()}
            if states[GPU] == states["host"] == states[hello["devices"][0]["id"]]:
                break
        wrong = readings["gpu:nonsense:0"]
        assert (wrong["state"], wrong["why"]) == (
            "unavailable",
            "The source nonsense failed: ValueError('nan as power_watts')",
        )


def test_where_only_another_package_has_a_gpu_no_recording_is_played(
    packages: Path, card: Path, tmp_path: Path
) -> None:
    with server(tmp_path, variables=seen_by([packages], card)) as jupyter:
        _, hello = subscribed(jupyter)
        assert hello.get("replay") is None
        assert [it["id"] for it in hello["devices"]][0] == GPU
        assert "NVML" in {it["what"] for it in hello["absences"]}
