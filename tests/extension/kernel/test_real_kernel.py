"""`%%gpuprof` in a real ipykernel: interrupts, `await`, and who it says it is."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager

TIMEOUT_S = 120


class Kernel:
    """A kernel with warpbook loaded."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager, self.client = manager, client

    def run(
        self, code: str, on_output: Callable[[str], None] | None = None
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Run a cell; give its reply and its outputs."""
        client = self.client
        message = client.session.msg(
            "execute_request",
            {"code": code, "silent": False, "store_history": True},
            metadata={"cellId": "cell-1"},
        )
        client.shell_channel.send(message)
        wanted = message["header"]["msg_id"]
        outputs = []
        while True:
            came = client.get_iopub_msg(timeout=TIMEOUT_S)
            if came["parent_header"].get("msg_id") != wanted:
                continue
            content = came["content"]
            if came["msg_type"] == "status" and content["execution_state"] == "idle":
                break
            if came["msg_type"] in ("stream", "display_data", "execute_result"):
                outputs.append(content)
            if came["msg_type"] == "stream" and on_output is not None:
                on_output(content["text"])
        while True:
            reply = client.get_shell_msg(timeout=TIMEOUT_S)
            if reply["parent_header"].get("msg_id") == wanted:
                return reply["content"], outputs

    def interrupt(self, text: str) -> None:
        if "go" in text:
            self.manager.interrupt_kernel()


@pytest.fixture
def kernel(ingest: Any, tmp_path: Path) -> Iterator[Kernel]:
    # as a Jupyter server names the file
    connection_file = tmp_path / "kernel-0a1b-2c.json"
    manager = KernelManager(kernel_name="python3", connection_file=str(connection_file))
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=TIMEOUT_S)
    started = Kernel(manager, client)
    started.run("%load_ext warpbook")
    yield started
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    manager.cleanup_resources()


def test_a_cell_in_a_real_kernel(kernel: Kernel, ingest: Any) -> None:
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
