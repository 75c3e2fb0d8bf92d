"""A kernel that a cell blocks: what the GPUs do is answered all the same."""

import asyncio
import json

CELL = "import time\nprint('begun', flush=True)\ntime.sleep(600)"


async def test_gpus_now_answers_while_a_cell_blocks_the_kernel(
    jp_fetch, jp_ws_fetch, jp_serverapp, assistant
) -> None:
    started = await jp_fetch("api", "kernels", method="POST", body="{}")
    kernel_id = json.loads(started.body)["id"]
    socket = await jp_ws_fetch("api", "kernels", kernel_id, "channels")
    message = {
        "header": {"msg_id": "m", "msg_type": "execute_request", "session": "s"},
        "parent_header": {},
        "metadata": {},
        "channel": "shell",
        "content": {"code": CELL, "silent": False},
    }
    await socket.write_message(json.dumps(message))
    while json.loads(await socket.read_message())["msg_type"] != "stream":
        pass
    async with assistant() as it:
        for _ in range(5):
            said = await it.ask("gpus_now")
            assert said["rows"] and said["read_at"]
            # the cell runs on
            kernel = jp_serverapp.kernel_manager.get_kernel(kernel_id)
            assert kernel.execution_state == "busy"
    socket.close()
    await asyncio.shield(jp_fetch("api", "kernels", kernel_id, method="DELETE"))
