"""`%%gpuprof` in a real ipykernel: interrupts, `await`, and who it says it is."""

from pathlib import Path
from typing import Any


def test_a_cell_in_a_real_kernel(kernel: Any, ingest: Any) -> None:
    """One kernel for all of it: a kernel with torch takes seconds to start."""
    reply, outputs = kernel.run("%%gpuprof\nimport torch\ntorch.ones(3).sum().item()")
    assert reply["status"] == "ok"
    assert [output["data"].get("text/plain") for output in outputs[:1]] == ["3.0"]
    assert "aten::sum" in outputs[1]["data"]["text/html"]
    assert len(outputs) == 2
    (report,) = ingest.reports
    assert (report.kernel_id, report.cell_id) == ("0a1b-2c", "cell-1")

    reply, outputs = kernel.run(
        "%%gpuprof -q\nimport asyncio\nawait asyncio.sleep(0.001, 'awaited')"
    )
    assert reply["status"] == "ok"
    assert [output["data"]["text/plain"] for output in outputs] == ["'awaited'"]

    reply, outputs = kernel.run(
        "%%gpuprof\nimport time, torch\ntorch.ones(3)\n"
        "print('go', flush=True)\ntime.sleep(600)",
        kernel.interrupt,
    )
    assert reply["status"] == "error"
    assert "aten::ones" in outputs[-1]["data"]["text/plain"]
    assert ingest.reports[-1].status == "interrupted"

    reply, outputs = kernel.run("%%gpuprof\n1 / 0")
    assert (reply["status"], reply["ename"]) == ("error", "ZeroDivisionError")
    assert ingest.reports[-1].status == "error"


def test_a_report_is_called_by_the_line_that_tells_most(
    kernel: Any, ingest: Any
) -> None:
    kernel.run("import torch, time")
    cells = {
        "# all of it\nimport torch\nif torch is not None:\n    x = torch.ones(3)\n": (
            "x = torch.ones(3)"
        ),
        "def work(n):\n    return torch.ones(n)\n\nn = 3\nwith torch.no_grad():\n"
        "    y = work(\n        n)": "y = work( n)",
        "n = 3\nn": "n = 3",
        "# nothing but this": "# nothing but this",
    }
    for cell, title in cells.items():
        reply, _ = kernel.run(f"%%gpuprof -q\n{cell}")
        assert ingest.reports[-1].title == title
        assert ingest.reports[-1].execution_count == reply["execution_count"]
    within = 'get_ipython().run_cell_magic("gpuprof", "-q", "torch.ones(3)")'
    reply, _ = kernel.run(within)
    assert ingest.reports[-1].execution_count == reply["execution_count"]
    kernel.run("%%gpuprof -q --lines\ntorch.ones(3)\ntime.sleep(0.05)\ntorch.ones(3)")
    assert ingest.reports[-1].title == "time.sleep(0.05)"
    kernel.run("%%gpuprof -q -o bf16\nimport time\ntime.sleep(0)")
    assert ingest.reports[-1].title == "bf16"


def test_a_repeated_cell_in_a_real_kernel(kernel: Any, ingest: Any) -> None:
    reply, outputs = kernel.run(
        "%%gpuprof -q -r 2 --lines -o p\nimport asyncio, torch\n"
        "n = globals().get('n', 0) + 1\nawait asyncio.sleep(0.001, n)"
    )
    assert reply["status"] == "ok"
    assert [output["data"]["text/plain"] for output in outputs] == ["4"]

    reply, outputs = kernel.run(
        "%%gpuprof -r 1000\nimport time\ntorch.ones(3)\n"
        "n += 1\nif n == 9:\n    print('go', flush=True)\n    time.sleep(600)",
        kernel.interrupt,
    )
    assert reply["status"] == "error"
    assert ingest.reports[-1].status == "interrupted"
    assert len(ingest.reports[-1].profile.repeats.bare_ns) == 2

    reply, outputs = kernel.run("y = %gpuprof torch.ones(3).cumsum(0)")
    assert reply["status"] == "ok"
    assert "aten::cumsum" in outputs[0]["data"]["text/plain"]


def heard(kernel: Any, words: str) -> None:
    """Wait until a cell printed this."""
    while True:
        came = kernel.hear()
        if came["msg_type"] == "stream" and words in came["content"]["text"]:
            return


def test_a_kernel_that_dies_or_is_restarted_in_a_profile_profiles_again(
    kernel: Any, ingest: Any, tmp_path: Path
) -> None:
    may_die = tmp_path / "may_die"
    # a kernel that dies at once may take what it printed with it
    die = (
        "import os, pathlib, time\n"
        f"while not pathlib.Path({str(may_die)!r}).exists(): time.sleep(0.01)\n"
        "os._exit(1)"
    )
    for last_words in (die, "import time; time.sleep(600)"):
        kernel.start(f"%%gpuprof\nimport torch\nprint('go', flush=True)\n{last_words}")
        heard(kernel, "go")
        may_die.touch()
        kernel.manager.restart_kernel(now=True)
        kernel.client.wait_for_ready(timeout=120)
        kernel.run("%load_ext warpbook")
        reply, outputs = kernel.run("%%gpuprof\nimport torch\nx = torch.ones(3)")
        assert reply["status"] == "ok"
        assert "aten::ones" in outputs[0]["data"]["text/plain"]
    # nothing came of the cells that never ended
    assert [report.status for report in ingest.reports] == ["ok", "ok"]


def test_two_notebooks_profile_at_once(
    kernel: Any, other_kernel: Any, ingest: Any, tmp_path: Path
) -> None:
    may_end = tmp_path / "may_end"
    kernel.start(
        "%%gpuprof\nimport pathlib, time, torch\nprint('go', flush=True)\n"
        f"while not pathlib.Path({str(may_end)!r}).exists(): time.sleep(0.01)\n"
        "x = torch.ones(3).cumsum(0)"
    )
    heard(kernel, "go")
    other_kernel.run("%%gpuprof\nimport torch\nx = torch.ones(3).prod()")
    may_end.touch()
    while len(ingest.reports) < 2:
        kernel.hear()
    assert [report.kernel_id for report in ingest.reports] == ["3d4e-5f", "0a1b-2c"]
    names = [
        {row.name for row in report.profile.operators} for report in ingest.reports
    ]
    assert "aten::prod" in names[0] and "aten::prod" not in names[1]
    assert "aten::cumsum" in names[1] and "aten::cumsum" not in names[0]
