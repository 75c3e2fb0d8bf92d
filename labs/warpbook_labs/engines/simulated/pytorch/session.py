"""One case on the simulated GPU: buffers, calls, and in the end the program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils._python_dispatch import _disable_current_modes

from warpbook_labs.engines.simulated.program import Place, Program
from warpbook_labs.engines.simulated.pytorch import current
from warpbook_labs.engines.simulated.pytorch.current import MOST_INSTRUCTIONS
from warpbook_labs.engines.simulated.pytorch.machine import Machine

_SEED = 67280421310721


def begin() -> None:
    """Put back what an earlier case may have set."""
    cudnn = torch.backends.cudnn
    cudnn.enabled, cudnn.benchmark, cudnn.deterministic = True, False, False
    torch.backends.fp32_precision = cudnn.fp32_precision = "none"
    # of its own besides what follows: a getter fails where the two differ
    cudnn.allow_tf32 = True
    cudnn.conv.fp32_precision = cudnn.rnn.fp32_precision = "tf32"
    torch.set_float32_matmul_precision("highest")
    torch._C._set_deterministic_algorithms(False, warn_only=False)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    torch.clear_autocast_cache()
    torch.default_generator.manual_seed(_SEED)


_PLACES: dict[str, Place] = {
    "device": "device",
    "pinned": "pinned",
    "host": "pageable",
    "pageable": "pageable",
}


def writes_of(tensor: Any) -> int | None:
    """Count how often a tensor's memory was written; None where no case runs."""
    machine = current.machine_or_none()
    return None if machine is None else int(machine.memories.of(tensor).writes)


class Session:
    """Records one case.

    Attributes:
        tensors: the case's buffers, by parameter, as the learner gets them.
    """

    def __init__(
        self,
        buffers: Mapping[str, tuple[NDArray[Any], str]],
        source_name: str = "solution.py",
        most_instructions: int = MOST_INSTRUCTIONS,
        is_judged: bool = True,
    ) -> None:
        """Lend memory for the buffers.

        Args:
            buffers: what each holds at first, which is copied, and where it is:
                "device", "pinned" or "host".
            source_name: lines are those of code from a file of this name.
            is_judged: what is recorded runs again with other numbers; else nothing is.
        """
        begin()
        self.machine = Machine(source_name, most_instructions, is_judged)
        memories = self.machine.memories
        self.tensors: dict[str, Any] = {}
        for name, (array, place) in buffers.items():
            cpu = torch.from_numpy(np.array(array, order="C"))
            self.tensors[name] = memories.lend(cpu, _PLACES[place])
        self._views = {
            name: memories.view(tensor) for name, tensor in self.tensors.items()
        }

    @contextmanager
    def recording(self) -> Iterator[None]:
        with current.recording(self.machine):
            yield

    def begin_call(
        self, number: int, values: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        """Say that `run` is called now, and what its buffers hold, which is copied."""
        with _disable_current_modes(), torch.no_grad():
            for name, array in (values or {}).items():
                given = torch.from_numpy(np.array(array))
                self.machine.memories.alias(self.tensors[name]).copy_(given)
        self.machine.begin_call(number)

    def held(self, name: str) -> bytes:
        with current.unrecorded(), _disable_current_modes(), torch.no_grad():
            cpu = self.machine.memories.alias(self.tensors[name])
            return bytes(cpu.contiguous().numpy().tobytes())

    def program(self) -> Program:
        return Program(self._views, tuple(self.machine.record.instructions))
