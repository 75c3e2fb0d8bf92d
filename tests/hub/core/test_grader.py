"""A real grader at a real service: it grades with the labs, and loses nothing."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.hub.core.course import FOREVER, classroom, publish_lab
from tests.hub.core.kills import STUB
from tests.hub.core.started_hub import Hub, started
from tests.programs import free_port, wait_for
from warpbook.hub_client import HubClient
from warpbook.hub_protocol import GRADERS, REFUSED_STATUS, Device, JobOrder
from warpbook_hub.database.tables import JOBS, RESULTS
from warpbook_hub.grader.engine import Graded, Places
from warpbook_hub.grader.labs import OWN_LABS, CantGrade, grade
from warpbook_hub.grader.local_pool import LocalPool
from warpbook_hub.grader.work_loop import WorkLoop
from warpbook_hub.queue import control, graders
from warpbook_hub.work.submissions import digest_of
from warpbook_labs.course.authoring import part
from warpbook_labs.lab.files import CATALOGUE, VAULT
from warpbook_labs.lab.loader import load

VECTOR_ADD = CATALOGUE / "kernels" / "vector_add"
#: of a lease that a busy machine does not lose
LONG_S = 600.0


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    room = classroom(tmp_path / "hub" / "hub.db", windows={"": FOREVER})
    yield Hub(room, free_port(), tmp_path)
    room.database.close()


def test_submissions_are_graded_with_the_labs_and_their_hidden_cases(hub: Hub) -> None:
    lab = load(VECTOR_ADD)
    with hub.room.database.write() as connection:
        plan = publish_lab(
            connection,
            "gpu101",
            lab="occupancy",
            language="plan",
            windows={"": FOREVER},
        )
    right = hub.room.submit("ada", lab.reference)
    wrong = hub.room.submit("bob", lab.starter)
    broken = hub.room.submit("cyd", f"{lab.reference}\nint x = ;\n")
    hub.room.lab = plan
    planned = hub.room.submit("ada", load(CATALOGUE / "memory" / "occupancy").reference)
    with hub.service(LONG_S), hub.grader(stub=False):
        results = {
            name: hub.wait(receipt.submission, "graded").result
            for name, receipt in (
                ("right", right),
                ("wrong", wrong),
                ("broken", broken),
                ("planned", planned),
            )
        }
    facts_of = {name: result.facts for name, result in results.items() if result}
    assert {name: facts.verdict for name, facts in facts_of.items()} == {
        "right": "right",
        "wrong": "wrong",
        "broken": "wrong",
        "planned": "right",
    }
    assert facts_of["right"].right == facts_of["right"].of > len(lab.lab.public)
    assert facts_of["broken"].error_kind == "compile error"
    assert not facts_of["right"].is_speed_graded
    assert any("Speed is not graded" in words for words in facts_of["right"].not_graded)
    assert results["right"] is not None and results["right"].lab_digest == lab.digest
    with hub.room.database.read() as connection:
        rows = connection.execute(RESULTS.select()).all()
    for row in rows:
        # a card to show, and nothing that hidden cases could be drawn with
        assert '"card"' in row.evidence and '"seed"' not in row.evidence
        seconds = json.loads(row.evidence)["seconds"]
        assert seconds["queue wait"] >= 0 and seconds["grading"] >= 0
    # a source that can't be compiled has none, nor has a plan
    checked = [row for row in rows if '"correctness"' in row.evidence]
    assert right.submission in {row.submission for row in checked}


def test_right_sources_have_a_gpu_each_and_wrong_ones_none(hub: Hub) -> None:
    receipts = {
        name: hub.room.submit(name, f"// {what}")
        for name, what in (("ada", "right"), ("bob", "wrong"), ("cyd", "right"))
    }
    with hub.service(), hub.grader("--simulated-gpus", "2"):
        standings = {
            name: hub.wait(receipt.submission, "graded")
            for name, receipt in receipts.items()
        }
    assert {name: graded.stage for name, graded in standings.items()} == {
        "ada": "gpu",
        "bob": "cpu",
        "cyd": "gpu",
    }
    with hub.room.database.read() as connection:
        jobs = connection.execute(JOBS.select().where(JOBS.c.stage == "gpu")).all()
    assert {job.device for job in jobs} <= {"SIM-0", "SIM-1"}


class Growing(LocalPool):
    """A machine to which a GPU comes while it grades."""

    now = Places(0)
    looks = 0

    def places(self) -> Places:
        self.looks += 1
        return self.now


def test_a_gpu_that_comes_judges_what_is_leased_at_that_moment(hub: Hub) -> None:
    with hub.room.database.write() as connection:
        token = graders.register(connection, hub.room.now_ms, "hub", "one")
    engine = Growing(command=(sys.executable, str(STUB)))
    loop = WorkLoop(HubClient(hub.url, token, GRADERS), engine)
    # the next heartbeat that is due comes after the result
    with hub.service(LONG_S), ThreadPoolExecutor(1) as pool:
        running = pool.submit(loop.run)
        try:
            wait_for("its first heartbeats", lambda: engine.looks > 9 or None)
            receipt = hub.room.submit("ada", "// right")
            engine.now = Places(1, (Device("SIM-0", "simulated"),))
            assert hub.wait(receipt.submission, "graded").stage == "gpu"
        finally:
            loop.stop()
        running.result()


def order_for(source: str, lab: str = "vector-add", digest: str = "") -> JobOrder:
    return JobOrder("j", 1, "cpu", lab, digest, source, digest_of(source), 5)


def test_a_grader_without_the_vault_or_with_another_version_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = load(VECTOR_ADD).reference
    learners, vault = tmp_path / "learners", tmp_path / "vault"
    whole = tmp_path / "whole"
    shutil.copytree(VECTOR_ADD, whole / "kernels" / "vector_add")
    part(learners, vault, whole)
    monkeypatch.setenv(OWN_LABS, str(learners))
    monkeypatch.delenv(VAULT, raising=False)
    with pytest.raises(CantGrade, match=VAULT):
        grade(order_for(reference))
    monkeypatch.setenv(VAULT, str(vault))
    graded = grade(order_for(reference))
    assert isinstance(graded, Graded) and graded.facts.verdict == "right"
    assert graded.lab_digest == load(VECTOR_ADD).digest
    with pytest.raises(CantGrade, match="another version"):
        grade(order_for(reference, digest="0" * 64))
    with pytest.raises(CantGrade, match="no lab"):
        grade(order_for(reference, "no-such-lab"))


def test_results_wait_for_a_service_that_is_away(hub: Hub) -> None:
    ended = hub.folder / "ended"
    receipt = hub.room.submit("ada", f"// until {ended}")
    with hub.grader():
        with hub.service(LONG_S) as service:
            hub.wait(receipt.submission, "runs")
            service.kill()
            service.wait()
        ended.touch()
        # it is graded while nobody listens
        wait_for("the end of the job", lambda: None if children(STUB.name) else True)
        with hub.service(LONG_S):
            hub.wait(receipt.submission, "graded")
    with hub.room.database.read() as connection:
        [job] = connection.execute(JOBS.select()).all()
    assert (job.fence, job.crashes) == (1, 0)


def children(name: str) -> list[int]:
    """Give the processes below this one that run a program by its name."""
    pids = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            command = process.cmdline()
            if "-m" not in command and any(name in part for part in command):
                pids.append(process.pid)
    return pids


def test_a_paused_grader_comes_back_and_its_result_is_refused(hub: Hub) -> None:
    ended = hub.folder / "ended"
    receipt = hub.room.submit("ada", f"// until {ended}")
    with hub.service():
        with hub.grader() as paused:
            hub.wait(receipt.submission, "runs")
            paused.send_signal(signal.SIGSTOP)
            other = hub.room.grader("two")
            hub.room.now_ms = int(time.time() * 1000) + 120_000
            (order,) = hub.room.lease(other)
            assert hub.room.finish(other, order).is_accepted
            paused.send_signal(signal.SIGCONT)
            ended.touch()
            hub.wait(receipt.submission, "graded")
            # it goes on with others
            hub.room.now_ms -= 120_000
            more = hub.room.submit("bob", "// wrong")
            hub.wait(more.submission, "graded")
    with hub.room.database.read() as connection:
        results = connection.execute(RESULTS.select()).all()
    assert len(results) == 2


def test_a_poisoned_submission_harms_one_job(hub: Hub) -> None:
    poisoned = hub.room.submit("ada", "// crash")
    sound = hub.room.submit("bob", "// right")
    with hub.service(), hub.grader():
        hub.wait(sound.submission, "graded")
        hub.wait(poisoned.submission, "parked")
    with hub.room.database.read() as connection:
        [job] = connection.execute(JOBS.select().where(JOBS.c.state == "parked")).all()
    assert job.crashes == 3 and "signal 11" in job.note


def test_a_cancelled_job_ends_in_the_grader_too(hub: Hub) -> None:
    hanging = hub.room.submit("ada", "// hang")
    with hub.service(), hub.grader():
        hub.wait(hanging.submission, "runs")
        with hub.room.database.write() as connection:
            [job] = connection.execute(JOBS.select()).all()
            instructor = hub.room.instructor
            control.cancel(connection, hub.room.now_ms, instructor, job.id, "it hangs")
        more = hub.room.submit("bob", "// right")
        hub.wait(more.submission, "graded")
        assert hub.wait(hanging.submission, "cancelled").result is None


def test_a_grader_that_is_stopped_gives_its_job_back(hub: Hub) -> None:
    receipt = hub.room.submit("ada", "// slow 600")
    with hub.service(LONG_S):
        with hub.grader() as grader:
            hub.wait(receipt.submission, "runs")
            grader.send_signal(signal.SIGTERM)
            wait_for("the end of the grader", grader.poll)
            assert grader.returncode == 0, hub.last_words()
        assert hub.wait(receipt.submission, "waits").stage == "cpu"
    with hub.room.database.read() as connection:
        [job] = connection.execute(JOBS.select()).all()
    assert job.crashes == 0


def test_a_drained_grader_finishes_and_a_retired_one_is_refused(hub: Hub) -> None:
    ended = hub.folder / "ended"
    receipt = hub.room.submit("ada", f"// until {ended}")
    room = hub.room
    with hub.service():
        with hub.grader() as grader:
            hub.wait(receipt.submission, "runs")
            with room.database.write() as connection:
                [info] = graders.graders(connection, room.now_ms)
                graders.drain(connection, room.now_ms, room.instructor, info.id)
            ended.touch()
            assert grader.wait(120) == 0
            hub.wait(receipt.submission, "graded")
        with hub.grader() as grader:
            log = hub.grader_log
            wait_for("a grader", lambda: "The hub answers" in log.read_text() or None)
            with room.database.write() as connection:
                graders.retire(connection, room.now_ms, room.instructor, info.id)
            assert grader.wait(120) == REFUSED_STATUS
    assert "No grader has this token" in hub.grader_log.read_text()


def test_a_grader_of_this_machine_waits_while_drained(hub: Hub) -> None:
    """What keeps it running would start one that ends anew, and undo the drain."""
    room = hub.room
    with hub.service(), hub.grader("--stay") as grader:
        first = room.submit("ada", "// right")
        hub.wait(first.submission, "graded")
        with room.database.write() as connection:
            [info] = graders.graders(connection, room.now_ms)
            graders.drain(connection, room.now_ms, room.instructor, info.id)
        second = room.submit("bob", "// right")
        time.sleep(5)
        assert grader.poll() is None
        hub.wait(second.submission, "waits")
        with room.database.write() as connection:
            graders.activate(connection, room.now_ms, room.instructor, info.id)
        hub.wait(second.submission, "graded")


def test_a_token_is_in_no_command_and_no_file_of_others(
    hub: Hub, tmp_path: Path
) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("secret-token\n")
    token_file.chmod(0o644)
    command = [sys.executable, "-m", "warpbook_hub.grader", hub.url]
    with started([*command, "--token-file", str(token_file)], hub.grader_log) as grader:
        assert grader.wait(120) == 2
    assert "chmod 600" in hub.grader_log.read_text()
    with hub.service(), hub.grader() as grader:
        wait_for("a grader", lambda: "slots" in hub.grader_log.read_text() or None)
        process = psutil.Process(grader.pid)
        with hub.room.database.read() as connection:
            digests = connection.exec_driver_sql("SELECT token_digest FROM graders")
            assert digests.scalar_one() not in " ".join(process.cmdline())
        assert "secret" not in " ".join(process.cmdline())
