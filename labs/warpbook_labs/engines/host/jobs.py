"""What the host lane's trusted process is asked; it tells what `device.jobs` has."""

from __future__ import annotations

from msgspec import Struct

from warpbook_labs.gpu.jobs import Request


class Bounds(Struct, frozen=True):
    """What a learner's process may take; the defaults are generous."""

    #: PyTorch and CUDA start in it
    start_s: float = 60.0
    #: `prepare`, which may warm up and tune
    prepare_s: float = 20.0
    #: all calls of one case, or of one timed unit
    run_s: float = 10.0
    #: of the host's memory, beside what it shares
    memory_bytes: int = 16 << 30
    #: in the folder of its own
    files: int = 64
    threads: int = 512


class HostRequest(Request, frozen=True):
    """Check a submission on host code, of which nothing is compiled, and time it."""

    #: False: PyTorch's device is the CPU, to try the lane without a GPU
    has_gpu: bool = True
    #: buffers go through the host's memory, as where CUDA shares none
    is_staged: bool = False
    bounds: Bounds = Bounds()
    #: the learner's process will be asked for a trace
    is_traced: bool = False
    least_pairs: int = 20
    most_pairs: int = 160
