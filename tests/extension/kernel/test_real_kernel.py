"""`%%gpuprof` in a real ipykernel: interrupts, `await`, and who it says it is."""

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
    assert len(ingest.reports[-1].profile.repeats.bare_ms) == 2

    reply, outputs = kernel.run("y = %gpuprof torch.ones(3).cumsum(0)")
    assert reply["status"] == "ok"
    assert "aten::cumsum" in outputs[0]["data"]["text/plain"]
