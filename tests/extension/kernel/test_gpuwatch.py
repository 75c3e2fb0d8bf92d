"""`%gpuwatch`: one line under each cell, under the right one, and never in its way."""

import html
import subprocess
import sys
from typing import Any

from warpbook.kernel.link.allocator import begin_cell, end_cell
from warpbook.kernel.link.late_output import LateOutput, one_line, receipt_line
from warpbook.protocol import (
    PROTOCOL_VERSION,
    CellRun,
    DeviceReceipt,
    DeviceSpan,
    Receipt,
    Verdict,
)

RUN = CellRun("r-1", PROTOCOL_VERSION, "k", None, "c", 1, "x = 1", 0.0, 1500.0, "ok")


def test_the_line_comes_under_its_cell_also_when_the_next_one_runs(
    kernel: Any, ingest: Any
) -> None:
    reply, outputs = kernel.run("%gpuwatch on")
    assert reply["status"] == "ok"
    assert "One line under each cell" in outputs[0]["data"]["text/plain"]
    assert ingest.watching == {"0a1b-2c": True}

    ingest.line = 'SM 93 % <script>alert("x")</script>'
    ingest.may_answer.clear()
    reply, outputs = kernel.run("# the first\n1 + 1")
    first = kernel.newest
    assert [output["data"]["text/plain"] for output in outputs[:1]] == ["2"]
    (placeholder,) = outputs[1:]
    # until the receipt comes, there is what the kernel knows
    assert "s" in placeholder["data"]["text/plain"]
    assert kernel.changes == []

    second = kernel.start("import time; print('go', flush=True); time.sleep(600)")
    while kernel.hear()["msg_type"] != "stream":
        pass
    ingest.may_answer.set()
    assert kernel.changed(first).startswith("SM 93 %")
    kernel.manager.interrupt_kernel()
    assert kernel.changed(second).startswith("SM 93 %")

    assert [run.status for run in ingest.runs] == ["ok", "interrupted"]
    run = ingest.runs[0]
    assert (run.kernel_id, run.cell_id, run.title) == (
        "0a1b-2c",
        "cell-1",
        "# the first",
    )
    assert run.allocators == ()
    assert ingest.runs[0].ended_ms <= ingest.runs[1].started_ms

    kernel.run("1 / 0")
    kernel.changed(kernel.newest)
    assert ingest.runs[-1].status == "error"
    kernel.run("def (")
    kernel.run("%%gpuprof -q\nimport torch\ntorch.ones(3).sum().item()")
    kernel.changed(kernel.newest)
    # what did not compile did nothing; what a magic runs inside is no cell of its own
    assert len(ingest.runs) == 4
    _, outputs = kernel.run("import torch; torch.cuda.is_initialized()")
    assert outputs[0]["data"]["text/plain"] == "False"
    kernel.changed(kernel.newest)

    kernel.run("%gpuwatch off")
    handed_in = len(ingest.runs)
    _, outputs = kernel.run("1 + 1")
    assert len(outputs) == 1
    _, outputs = kernel.run("%gpuwatch")
    assert outputs[0]["data"]["text/plain"].startswith("Off")
    assert len(ingest.runs) == handed_in


def test_turned_off_and_on_again_it_is_on(kernel: Any, ingest: Any) -> None:
    kernel.run("%gpuwatch on")
    # a receipt takes longer than it takes to change one's mind
    kernel.run("1 + 1")
    kernel.run("%gpuwatch off\n%gpuwatch on")
    kernel.run("1 + 1")
    assert kernel.changed(kernel.newest) == "the receipt"
    assert ingest.watching == {"0a1b-2c": True}


def test_each_of_fifty_quick_cells_gets_its_own_line(kernel: Any, ingest: Any) -> None:
    kernel.run("%gpuwatch on")
    cells = [kernel.start(f"# cell {n}") for n in range(50)]
    for cell in cells:
        assert kernel.changed(cell) == "the receipt"
    assert [run.title for run in ingest.runs] == [f"# cell {n}" for n in range(50)]
    assert len({run.id for run in ingest.runs}) == 50


def test_a_server_that_is_gone_is_told_once_and_may_come_back(
    kernel: Any, ingest: Any
) -> None:
    kernel.run("%gpuwatch on")
    ingest.status, ingest.message = 503, "no history"
    kernel.run("1")
    assert "no history" in kernel.changed(kernel.newest)
    _, outputs = kernel.run("2")
    assert [output["data"]["text/plain"] for output in outputs] == ["2"]
    _, outputs = kernel.run("%gpuwatch status")
    assert "no history" in outputs[0]["data"]["text/plain"]
    ingest.status = 204
    # this one's receipt is the first that comes again; the next has a line
    while len(kernel.run("3")[1]) == 1:
        pass
    assert kernel.changed(kernel.newest) == "the receipt"


def test_a_kernel_ends_by_itself_with_a_receipt_on_its_way(
    kernel: Any, ingest: Any
) -> None:
    kernel.run("%gpuwatch on")
    ingest.may_answer.clear()
    kernel.run("import atexit; atexit.register(print, 'ended by itself', flush=True)")
    kernel.client.shutdown()
    while True:
        came = kernel.hear()
        if came["msg_type"] == "stream" and "ended" in came["content"]["text"]:
            return


def test_without_a_server_it_stays_off_and_says_why(shell: Any) -> None:
    shell.run_cell("%gpuwatch on")
    shell.run_cell("1 + 1")
    (output,) = shell.display_pub.outputs
    assert output["data"]["text/plain"].startswith("Off: ")
    assert "pip install warpbook" in output["data"]["text/plain"]


def test_what_is_said_fits_a_terminal_and_is_html_for_a_notebook(shell: Any) -> None:
    shell.run_cell("%gpuwatch on")
    (output,) = shell.display_pub.outputs
    lines = output["data"]["text/plain"].split("\n")
    assert len(lines) > 1 and max(map(len, lines)) <= 80
    # one paragraph that breaks where the page ends
    assert " ".join(lines) in html.unescape(output["data"]["text/html"])
    figures = one_line(" · ".join(f"figure {n} <b>" for n in range(9)))
    LateOutput(shell, figures)
    line = shell.display_pub.outputs[-1]["data"]
    assert max(map(len, line["text/plain"].split("\n"))) <= 80
    assert "<b>" not in line["text/html"]


def test_a_server_without_receipts_is_told(shell: Any, ingest: Any) -> None:
    ingest.status, ingest.message = 404, "Not Found"
    shell.run_cell("%gpuwatch on")
    (output,) = shell.display_pub.outputs
    assert "Install the same warpbook" in output["data"]["text/plain"]


def test_a_refusal_with_a_reason_of_its_own_gets_no_other(
    shell: Any, ingest: Any
) -> None:
    ingest.status, ingest.message = 422, "This server does not run that kernel."
    shell.run_cell("%gpuwatch on")
    (output,) = shell.display_pub.outputs
    assert output["data"]["text/plain"].endswith(
        "The Jupyter server refused: This server does not run that kernel."
    )


def test_an_unloaded_extension_leaves_nothing_behind(shell: Any, ingest: Any) -> None:
    shell.run_cell("%gpuwatch on")
    shell.extension_manager.unload_extension("warpbook")
    shell.display_pub.outputs.clear()
    shell.run_cell("1 + 1")
    assert shell.display_pub.outputs == []
    assert "gpuwatch" not in shell.magics_manager.magics["line"]
    shell.extension_manager.load_extension("warpbook")


def test_counting_loads_no_torch_and_sets_up_no_cuda() -> None:
    program = (
        "import sys; from warpbook.kernel.link.allocator import begin_cell, end_cell;"
        "print(end_cell(begin_cell()), 'torch' in sys.modules);"
        "import torch;"
        "print(end_cell(begin_cell()), torch.cuda.is_initialized())"
    )
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert completed.stdout == "() False\n() False\n"
    assert (begin_cell(), end_cell({})) == ({}, ())


def test_a_line_escapes_and_bounds_what_it_is_given() -> None:
    shown = receipt_line(Receipt(RUN, 1.0, (), "<b>\x1b[2J" + "x" * 10_000))
    assert "\x1b" not in shown["text/plain"]
    assert len(shown["text/plain"]) < 1000
    assert "<b>" not in shown["text/html"] and "&lt;b&gt;" in shown["text/html"]


def test_one_command_profiles_the_next_run_of_the_cell(
    kernel: Any, ingest: Any
) -> None:
    kernel.run("import torch")
    kernel.run("%gpuwatch on")
    assert (
        "No cell has run" in kernel.run("%gpuwatch trace")[1][0]["data"]["text/plain"]
    )
    waited = Verdict("host-bound", "in words", "the rule")
    span = DeviceSpan("gpu:a", {}, 410.0, "counter", ())
    ingest.devices = (DeviceReceipt(span, shared=False, verdict=waited),)
    cell = "# the slow one\nx = torch.ones(3).cumsum(0)\nx[2].item()"
    kernel.run(cell)
    assert "%gpuwatch trace" in kernel.changed(kernel.newest)
    # others may run in between
    ingest.devices = ()
    kernel.run("1 + 1")
    kernel.changed(kernel.newest)
    _, outputs = kernel.run("%gpuwatch trace")
    assert "# the slow one" in outputs[0]["data"]["text/plain"]
    # all cells of this frontend have one id, as one that is edited keeps its own
    _, outputs = kernel.run(cell)
    assert outputs[0]["data"]["text/plain"] == "3.0"
    assert "aten::cumsum" in outputs[1]["data"]["text/plain"]
    assert ingest.reports[0].title == "x = torch.ones(3).cumsum(0)"
    _, outputs = kernel.run(cell)
    assert len(outputs) == 2, "the value and the receipt: it is profiled once"
