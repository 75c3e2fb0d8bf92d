"""Which parts of the window work on the GPU is in, by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from warpbook_profiler.events.columns import Category, Columns, distinct
from warpbook_profiler.facts.kernel_work import LimitedKernels
from warpbook_profiler.facts.kernels import communicates
from warpbook_profiler.model.figures import (
    COMMUNICATION,
    DEVICE_COPIES,
    HOST_COPIES,
    kernel_part,
)

#: copies between host and GPU, as CUDA's and HIP's tools call them
WITH_HOST = re.compile(r"(Memcpy )?(HtoD|DtoH) |Copy(HostToDevice|DeviceToHost)$")
#: a copy that is communication: from one GPU to another
BETWEEN_GPUS = re.compile(r"Memcpy PtoP")


def parts_of_work(
    events: Columns, limited: Iterable[LimitedKernels]
) -> dict[str, tuple[str, ...]]:
    """Return the parts by name; kernels of one name may have several limits."""
    parts: dict[str, dict[str, None]] = {}
    for one in limited:
        of_name = parts.setdefault(one.launched.name, {})
        of_name[kernel_part(one.limit.bound, one.limit.far)] = None
    kernels, copies = events.only(Category.KERNEL), events.only(Category.COPY)
    communicating = kernels.name[communicates(events, kernels)]
    for at in distinct(communicating).tolist():
        parts[kernels.names[at]] = {COMMUNICATION: None}
    for at in distinct(copies.name).tolist():
        parts[copies.names[at]] = {_of_copies(copies.names[at]): None}
    return {name: tuple(of_name) for name, of_name in parts.items()}


def _of_copies(name: str) -> str:
    if BETWEEN_GPUS.match(name):
        return COMMUNICATION
    return HOST_COPIES if WITH_HOST.match(name) else DEVICE_COPIES
