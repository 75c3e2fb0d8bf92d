"""Files beside a learner's work are never taken for modules by our processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpbook_labs.course.session import check_public, find
from warpbook_labs.engines.kernels.lane import KernelRequest
from warpbook_labs.gpu import parent
from warpbook_labs.gpu.parent import run_child

#: what each of them imports
NAMES = ("numbers", "numpy", "random", "statistics", "torch")


@pytest.fixture(autouse=True)
def among_files_named_like_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text("raise ImportError('of the folder')\n")
    monkeypatch.chdir(tmp_path)
    # as `python -m` has it
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("lab", ["vector-add", "occupancy", "int8-linear"])
def test_a_right_source_passes(lab: str) -> None:
    loaded = find(lab)
    assert check_public(loaded, loaded.reference).result.status == "passed"


def test_the_process_that_is_trusted_with_the_gpu_reads_none() -> None:
    request = KernelRequest("", "", (), image=b"")
    heard = parent.run(request, "GPU-00000000-0000-0000-0000-000000000000", 60)
    # it began, and met a lab that is none or a driver that is not there
    assert heard.ended is not None and "of the folder" not in heard.ended.message
    completed = run_child("warpbook_labs.engines.kernels.worker", b"", "GPU-0", 60)
    assert "of the folder" not in completed.last_words
