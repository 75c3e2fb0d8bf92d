"""A bounded run with a fixed seed; `python -m tests.fuzz` is the longer one."""

import time
from pathlib import Path

from tests.fuzz.driver import (
    MARGIN_BYTES,
    Fuzz,
    answers,
    files,
    limited_server,
    memory_bytes,
    tracebacks,
)
from tests.fuzz.readers import run
from tests.fuzz.stored import archives, backups

SEED = 15


def test_nothing_that_comes_in_breaks_the_server(tmp_path: Path) -> None:
    with limited_server(tmp_path) as running:
        with Fuzz(running, SEED) as fuzz:
            # what is imported when it is first needed is no leak
            fuzz.page(46)
            before_bytes = memory_bytes(running)
            surfaces = [fuzz.page(460), fuzz.ingest(300), fuzz.stream(270)]
        assert answers(running)
        deadline_s = time.monotonic() + 60
        while memory_bytes(running) > before_bytes + MARGIN_BYTES:
            assert time.monotonic() < deadline_s, "memory is not given back"
            time.sleep(0.5)
    assert not tracebacks(tmp_path)
    for surface in surfaces:
        assert surface.failures == [], surface.name
        assert surface.refused > 50, surface.name


def test_no_input_breaks_a_reader(tmp_path: Path) -> None:
    counted, _, _ = run(SEED, 0, 2000, tmp_path)
    for name, reader in counted:
        assert reader.failures == [], name
        assert reader.inputs > reader.refused > 10 or name == "timelines", name


def test_no_file_breaks_its_reader(tmp_path: Path) -> None:
    stored = (archives(SEED, 100, tmp_path / "a"), backups(SEED, 150, tmp_path / "b"))
    for surface in (*files(SEED, 150, tmp_path), *stored):
        assert surface.failures == [], surface.name
        assert surface.refused > 10, surface.name
