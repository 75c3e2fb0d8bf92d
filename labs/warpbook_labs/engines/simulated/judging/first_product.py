"""Whether cuBLAS is first wanted while a graph is captured, which CUDA refuses.

PyTorch has cuBLAS make its handle at the first matrix product of a thread. That takes
memory of the device, so in a capture it fails with `CUBLAS_STATUS_NOT_INITIALIZED`
(pytorch/pytorch#99397). The workspace of each stream is none of this: it comes from
PyTorch's allocator, which a capture allows.
"""

from __future__ import annotations

from warpbook_labs.engines.simulated.judging.calls.allowed import OF_CUBLAS, base_of
from warpbook_labs.engines.simulated.judging.graphs import Capture, Kernel
from warpbook_labs.engines.simulated.judging.watch import Watch


class FirstProduct:
    """Waits for the first product of a program."""

    def __init__(self, watch: Watch) -> None:
        """Begin without a handle."""
        self._watch = watch
        self._has_handle = False

    def launched(self, kernel: Kernel, capture: Capture | None) -> None:
        """Note a kernel, and tell of the first product in a capture.

        A relaxed capture is not known to fail, and is let pass.
        """
        is_product = base_of(kernel.launch.operation) in OF_CUBLAS
        if self._has_handle or not (is_product and kernel.has_elements()):
            return
        self._has_handle = True
        if capture is not None and not capture.graph.is_relaxed:
            self._watch.first_product(kernel.launch.line)
