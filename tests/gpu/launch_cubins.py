"""Launches kernels of labs on the GPU, in a process of its own, which ncu may watch.

    python tests/gpu/launch_cubins.py FOLDER

`FOLDER/work.msgpack` says what; `FOLDER/held.msgpack` is what the buffers held then.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "labs"), str(ROOT / "monitors")]

from warpbook_labs.cases.execution import Run  # noqa: E402
from warpbook_labs.gpu.driver import Device  # noqa: E402

#: what nobody has written, as the GPU sees it
POISON = 0xFF


class Work(msgspec.Struct):
    """A program, and one run of it."""

    cubin: bytes
    run: Run


def main() -> None:
    """Do all of the work in its order."""
    folder, device = Path(sys.argv[1]), Device()
    works = msgspec.msgpack.decode(
        (folder / "work.msgpack").read_bytes(), type=list[Work]
    )
    held: list[dict[str, bytes]] = []
    for work in works:
        program, addresses = device.load(work.cubin), {}
        for buffer in work.run.memory:
            addresses[buffer.name] = device.allocate(buffer.size_bytes)
            values = np.full(buffer.size_bytes, POISON, np.uint8)
            if buffer.data is not None:
                values = np.frombuffer(buffer.data, np.uint8)
            device.upload(addresses[buffer.name], values)
        for launch in work.run.launches:
            device.launch(device.prepare(program, launch, addresses))
        device.wait(30)
        outputs = [buffer for buffer in work.run.memory if buffer.is_told]
        held.append(
            {
                buffer.name: device.download(
                    addresses[buffer.name], buffer.size_bytes
                ).tobytes()
                for buffer in outputs
            }
        )
        for address in addresses.values():
            device.free(address)
        program.unload()
    (folder / "held.msgpack").write_bytes(msgspec.msgpack.encode(held))


if __name__ == "__main__":
    main()
