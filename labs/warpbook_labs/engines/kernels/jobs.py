"""What the trusted process is asked to do with kernels."""

from __future__ import annotations

from warpbook_labs.gpu.jobs import Request


class KernelRequest(Request, frozen=True, kw_only=True):
    """Check kernels, and time them."""

    #: what the source was compiled to; of Triton, PTX that the driver makes a cubin of
    image: bytes
