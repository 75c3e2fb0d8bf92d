"""A cell that ran out of GPU memory, in a shell without a server."""

import weakref
from typing import Any

import pytest

from tests.monitors.memory.test_post_mortem import CUPY, TORCH


def shown(shell: Any) -> list[dict[str, str]]:
    return [output["data"] for output in shell.display_pub.outputs]


def test_without_a_server_the_library_s_own_figures_are_told(shell: Any) -> None:
    result = shell.run_cell(f"raise RuntimeError({TORCH!r})")
    assert str(result.error_in_exec) == TORCH
    (output,) = shown(shell)
    assert output["text/plain"].startswith(
        "Out of GPU memory. 20.0 GiB was asked for on GPU 1 of this process, where "
        "3.10 GiB of 140 GiB was free. This process holds 130 GiB."
    )
    assert "20.0 GiB was asked for" in output["text/html"]


CUPYS = f"""
class OutOfMemoryError(MemoryError):
    __module__ = "cupy.cuda.memory"
raise OutOfMemoryError({CUPY!r})
"""
WRAPPED = f"""
try:
    raise RuntimeError({TORCH!r})
except RuntimeError as error:
    raise ValueError("training failed") from error
"""
HANDLED = f"""
try:
    raise RuntimeError({TORCH!r})
except RuntimeError:
    1 / 0
"""


@pytest.mark.parametrize("code", [CUPYS, WRAPPED])
def test_other_ways_to_run_out_are_known(shell: Any, code: str) -> None:
    shell.run_cell(code)
    assert "was asked for" in shown(shell)[0]["text/plain"]


@pytest.mark.parametrize(
    "code", ["1 / 0", "raise MemoryError('out of memory')", HANDLED, "1", "1 +"]
)
def test_what_is_something_else_is_left_alone(shell: Any, code: str) -> None:
    shell.run_cell(code)
    assert shown(shell) == []


UNREADABLE = """
class Broken(RuntimeError):
    def __str__(self):
        raise RuntimeError("CUDA out of memory")
raise Broken
"""


def test_an_error_that_can_not_be_read_is_left_alone(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell(UNREADABLE)
    assert shown(shell) == []
    assert "post_run_cell" not in capsys.readouterr().out


def test_a_refusal_of_the_server_does_not_hide_what_is_known(
    shell: Any, ingest: Any
) -> None:
    ingest.status, ingest.message = 404, "Not Found"
    shell.run_cell(f"raise RuntimeError({TORCH!r})")
    assert "20.0 GiB was asked for" in shown(shell)[0]["text/plain"]


def test_nothing_holds_on_to_what_the_cell_held(shell: Any) -> None:
    shell.run_cell("class Tensor: pass")
    shell.run_cell(f"tensor = Tensor(); raise RuntimeError({TORCH!r})")
    tensor = weakref.ref(shell.user_ns["tensor"])
    shell.run_cell("del tensor")
    assert tensor() is None


def test_unloading_ends_it(shell: Any) -> None:
    shell.extension_manager.unload_extension("warpbook")
    shell.run_cell(f"raise RuntimeError({TORCH!r})")
    assert shown(shell) == []
    shell.extension_manager.load_extension("warpbook")
