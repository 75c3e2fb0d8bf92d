"""One case on the simulated GPU: buffers, calls, and in the end the program."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.simulated.program import BeginCall, Place, Program
from warpbook_labs.simulated.recording.modules import MODULES
from warpbook_labs.simulated.recording.recorder import Recorder, make_current
from warpbook_labs.simulated.recording.tensor import Tensor, view_of

_PLACES: dict[str, Place] = {
    "device": "device",
    "pinned": "pinned",
    "host": "pageable",
    "pageable": "pageable",
}


class Session:
    """Records one case; the newest of a process is the one that does.

    Attributes:
        tensors: the case's buffers, by parameter, as the learner gets them.
    """

    def __init__(
        self,
        buffers: Mapping[str, tuple[NDArray[Any], str]],
        source_name: str = "solution.py",
        most_instructions: int = 100_000,
    ) -> None:
        """Lend memory for the buffers.

        Args:
            buffers: what each holds at first, which is copied, and where it is:
                "device", "pinned" or "host".
            source_name: lines are those of code from a file of this name.
            most_instructions: so much may be asked.
        """
        self._recorder = Recorder(source_name, most_instructions)
        self.tensors: dict[str, Tensor] = {}
        for name, (array, place) in buffers.items():
            storage = self._recorder.lend(array, _PLACES[place])
            memory = storage.data.view(array.dtype).reshape(array.shape)
            self.tensors[name] = Tensor(storage, memory)
        self._views = {name: view_of(tensor) for name, tensor in self.tensors.items()}
        make_current(self._recorder)

    def modules(self) -> dict[str, ModuleType]:
        """What belongs into `sys.modules` in place of PyTorch."""
        return dict(MODULES)

    def begin_call(
        self, number: int, values: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        """Say that `run` is called now, and what its buffers hold, which is copied."""
        for name, array in (values or {}).items():
            np.copyto(self.tensors[name].array, array, casting="no")
        self._recorder.leave_streams()
        self._recorder.add(BeginCall(number))

    def program(self) -> Program:
        """End the case: all that was asked."""
        self._recorder.is_open = False
        return Program(self._views, tuple(self._recorder.instructions))
