"""Hints of kernels from a real Jupyter server to a real hub, and from who means ill."""

from __future__ import annotations

import contextlib
import os
import pwd
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.hub.service.class_hub import (
    COURSE,
    HOSTILE,
    SUBMIT,
    ClassHub,
    Visitor,
    class_hub,
)
from tests.monitors.holders.agent import agent, process_of, token_file
from tests.programs import wait_for
from tests.server_process import ServerProcess, server
from tests.stub_nvml import StubNvml
from warpbook.kernel_hints_protocol import MOST_KERNELS, MOST_PROCESSES, PATH

CAMPUS = f"courses/{COURSE}/campus"
GPUS = f"courses/{COURSE}/gpus"
#: whose account processes of this test have
ME = pwd.getpwuid(os.getuid()).pw_name
GPU = "GPU-57ab0000-0000-4000-8000-000000000000"
GIB = 1 << 30


@dataclass
class Campus:
    hub: ClassHub
    grace: Visitor
    me: Visitor
    #: of a learner without an account here
    ada: Visitor
    node_token: str

    def take(self, policy: str) -> None:
        self.grace.done(f"{CAMPUS}/hints", {"take": policy})

    def holders(self, gpu: int = 0) -> list[dict]:
        board = self.grace.get(CAMPUS).json()
        gpus = [gpu for node in board["nodes"] for gpu in node["gpus"]]
        return gpus[gpu]["holders"] or [] if gpu < len(gpus) else []

    def hints(self) -> list[dict]:
        return [hint for one in self.holders() for hint in one["hints"]]

    def until(self, what: str, is_so: Callable[[], bool]) -> None:
        wait_for(what, lambda: is_so() or None, 60)


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campus]:
    with class_hub(tmp_path_factory.mktemp("hub")) as hub:
        grace = Visitor(hub, "grace").log_in()
        roster = f"username,section\nada,monday\n{ME},monday\n"
        grace.done(f"courses/{COURSE}/roster", {"csv": roster})
        token = grace.done(f"{CAMPUS}/nodes", {"name": "n7"})["token"]
        me, ada = (Visitor(hub, name).log_in() for name in (ME, "ada"))
        yield Campus(hub, grace, me, ada, token)


@contextlib.contextmanager
def node(campus: Campus, stub: StubNvml, folder: Path) -> Iterator[None]:
    """Have an agent look at the stub's GPUs."""
    folder.mkdir(exist_ok=True)
    options = ["--hub", campus.hub.inner_url, "--every", "1"]
    options += ["--token-file", str(token_file(folder, campus.node_token))]
    with agent(folder, stub, *options, "--spool", str(folder / "spool")):
        yield


def kernel_pid(jupyter: ServerProcess, path: str) -> int:
    """Start a notebook's kernel; give its PID."""
    body = {"path": path, "name": "", "type": "notebook", "kernel": {"name": "python3"}}
    started = jupyter.post("api/sessions", body)
    assert started.status_code == 201, started.text
    kernel_id = started.json()["kernel"]["id"]

    def pid() -> int | None:
        for child in psutil.Process(jupyter.process.pid).children():
            with contextlib.suppress(psutil.Error):
                if any(kernel_id in word for word in child.cmdline()):
                    return child.pid
        return None

    return wait_for("the kernel", pid)


def said(*processes: tuple[str, int], server_id: str = "a" * 16, **more) -> dict:
    named = [{"gpu": gpu, "pid": pid} for gpu, pid in processes]
    kernel = {"processes": named, "is_busy": False, "idle_s": 2400, **more}
    return {"server": server_id, "kernels": [kernel]}


def kept_pids(campus: Campus) -> bool:
    database = f"file:{campus.hub.folder}/course/hub.db?mode=ro"
    with contextlib.closing(sqlite3.connect(database, uri=True)) as connection:
        rows = connection.execute("SELECT held FROM node_gpus").fetchall()
    return any('"pids":[' in row[0] and '"pids":[]' not in row[0] for row in rows)


def test_a_server_says_which_notebook_idles_and_a_person_can_stop_it(
    campus: Campus, make_stub_nvml: Callable[..., StubNvml], tmp_path: Path
) -> None:
    stub = make_stub_nvml("h200", "h200")
    campus.take("notebooks")
    variables = {
        "WARPBOOK_HUB_URL": campus.hub.inner_url,
        "JUPYTERHUB_API_TOKEN": campus.me.token(SUBMIT),
    }
    silent_home, home = tmp_path / "silent", tmp_path / "home"
    silent_home.mkdir(), home.mkdir()
    stops = "--WarpbookApp.kernel_hints=False"
    with (
        node(campus, stub, tmp_path / "agent"),
        server(silent_home, stub, stops, variables=variables) as silent,
        server(home, stub, variables=variables) as speaks,
    ):
        stub.work(1, (kernel_pid(silent, "secret.ipynb"), 0))
        # longer than what a view shows of a path
        folder = f"thesis/{'of-grace-' * 12}"
        stub.work(0, (kernel_pid(speaks, f"{folder}/analysis.ipynb"), 0))
        campus.until("the hint", lambda: bool(campus.hints()))
        ((holder,), (other,)) = campus.holders(0), campus.holders(1)
        assert (holder["username"], other["username"]) == (ME, ME)
        (hint,) = holder["hints"]
        # the folder is nobody's business
        assert (hint["notebook"], other["hints"]) == ("analysis.ipynb", [])
        page = campus.grace.page(CAMPUS).text
        assert "says: analysis.ipynb" in page
        assert not [word for word in ("secret", "thesis", "of-grace") if word in page]
        # who said it sees it, and how to stop it; nobody else does
        path = "warpbook/api/v1/holders"
        words, no_words = (
            one.get(path).json()["devices"][f"gpu:{uuid}"]["hub_notice"]
            for one, uuid in ((speaks, GPU), (silent, f"{GPU[:-1]}1"))
        )
        assert "names of their notebooks" in words and no_words == ""
        own = campus.me.page(GPUS).text
        assert "analysis.ipynb" in own
        assert "WarpbookApp.kernel_hints = False" in own
        assert "analysis.ipynb" not in campus.ada.page(GPUS).text
        assert campus.ada.page(CAMPUS).status_code == 403
        assert campus.ada.get(CAMPUS).status_code == 403
        assert kept_pids(campus)
        campus.take("off")
        assert campus.hints() == []
        assert "What your servers say" not in campus.me.page(GPUS).text
        campus.until("PIDs that are not kept", lambda: not kept_pids(campus))


def test_nobody_is_believed_about_others_or_too_much(
    campus: Campus, make_stub_nvml: Callable[..., StubNvml], tmp_path: Path
) -> None:
    stub = make_stub_nvml("h200")
    campus.take("notebooks")
    with (
        # whoever runs it says that it is ada's
        process_of(None, JUPYTERHUB_USER="ada") as pid,
        node(campus, stub, tmp_path / "agent"),
    ):
        stub.work(0, (pid, 0))
        campus.until("the holder", lambda: bool(campus.holders()))
        campus.until("its PID", lambda: kept_pids(campus))
        # of an account that is another's, though the environment names her
        assert campus.ada.post(PATH, said((GPU, pid))).status_code == 200
        assert campus.me.post(PATH, said((GPU, 1), ("GPU-other", pid))).ok
        assert campus.hints() == []
        # a person's own word, by a token as a server has it
        token = Visitor(campus.hub, token=campus.me.token(SUBMIT))
        hostile = said((GPU, pid), server_id="b" * 16, notebook=HOSTILE)
        assert token.post(PATH, hostile).json() == {"policy": "notebooks"}
        assert [hint["notebook"] for hint in campus.hints()] == [HOSTILE]
        for page in (campus.grace.page(CAMPUS), campus.me.page(GPUS)):
            assert "&lt;script&gt;alert(1)" in page.text
            assert "<script>alert" not in page.text
        assert "idle for about 40 min" in campus.grace.page(CAMPUS).text
        assert token.post(PATH, hostile).status_code == 429
        refused = [
            {**said((GPU, pid), server_id="c" * 16), "username": ME},
            said((GPU, pid), server_id="not one"),
            said((GPU, pid), notebook="x" * 101),
            said((GPU, -1)),
            said((GPU, pid), idle_s=-1),
            said(*[(GPU, number + 1) for number in range(MOST_PROCESSES + 1)]),
            {
                "server": "c" * 16,
                "kernels": said((GPU, pid))["kernels"] * (MOST_KERNELS + 1),
            },
        ]
        assert [token.post(PATH, one).status_code for one in refused] == [400] * 7
        large = said((GPU, pid), notebook="x" * (17 << 10))
        assert token.post(PATH, large).status_code == 413
        for stranger in (
            Visitor(campus.hub),
            Visitor(campus.hub, token="guessed"),
            Visitor(campus.hub, token=campus.node_token),
        ):
            assert stranger.post(PATH, said((GPU, pid))).status_code == 403
        # who is in no course is not listened to
        olga = Visitor(campus.hub, "olga").log_in()
        assert olga.get(PATH).json() == {"policy": "off"}
        assert olga.post(PATH, said((GPU, pid))).json() == {"policy": "off"}
        assert campus.me.post(f"{CAMPUS}/hints", {"take": "off"}).status_code == 403
        assert campus.grace.post(f"{CAMPUS}/hints", {"take": "all"}).status_code == 400
