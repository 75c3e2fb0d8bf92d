"""Where the time went by who called whom: the tree behind a flame graph."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import numpy as np

from warpbook_profiler.events.columns import NONE, Category, Int64s, rows_by
from warpbook_profiler.events.intervals import nesting
from warpbook_profiler.facts.paths import Paths
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.cell_profile import CallNode, GroupRow

#: what is smaller than this part of the host's and of the GPU's time is left out
_LEAST_SHARE = 0.001
MAX_NODES = 600
MAX_NAME = 160
#: deeper calls count to the one at this depth; Python's own limit is 1,000
MAX_DEPTH = 200
MAX_GROUPS = 100
_CALLERS = (Category.OPERATOR, Category.PYTHON)
_MODULE = "nn.Module: "
#: torch.profiler's names of Python functions, "train.py(42): forward", with the file as
#: seen from the folders that Python imports from
_FUNCTION = re.compile(r"(?P<file>[^()]+)\(\d+\): .+")
#: of libraries, whose lines nobody looks for
_LIBRARY = re.compile(r"(.*/)?(site-packages|dist-packages|torch)/|<frozen ")


class CallTree:
    """Every chain of calls, with the host's own time in it and the GPU's work of it."""

    def __init__(self, trace: Trace, *, gpu_recorded: bool) -> None:
        """Add up all threads; chains of equal names are one.

        Args:
            trace: with Python functions where they were recorded.
            gpu_recorded: else the GPU's time is not known.
        """
        self._gpu_recorded = gpu_recorded
        host, calls, self._paths = trace.operators, trace.calls, trace.paths
        if trace.events.is_in(Category.PYTHON).any():
            host = trace.events.only(*_CALLERS)
            # an annotation begins within the function that opens it, and outlasts
            # that: beside functions it would seem to be called by it
            host = host.where(~host.annotates)
            self._paths = Paths(host, _CALLERS)
        count = len(self._paths.parents)
        #: by chain, of its last call alone
        self.host_ns = np.zeros(count, np.int64)
        self.gpu_ns = np.zeros(count, np.int64)
        self.calls = np.zeros(count, np.int64)
        for rows in rows_by(host.track):
            start_ns, end_ns = host.start_ns[rows], host.end_ns[rows]
            self_ns, _ = nesting(start_ns, end_ns)
            chain = self._paths.of_thread(int(host.track[rows[0]]))
            np.add.at(self.host_ns, chain, np.maximum(self_ns, 0))
            np.add.at(self.calls, chain, 1)
        known = np.flatnonzero(calls.launch != NONE)
        row = calls.launch[known]
        chain = self._paths.at(calls.api.track[row], calls.api.start_ns[row])
        within = chain != NONE
        np.add.at(self.gpu_ns, chain[within], trace.on_gpu.duration_ns[known[within]])

    def nodes(self) -> tuple[CallNode, ...]:
        """Give the tree without its smallest parts; a parent precedes its children."""
        parents, names = self._paths.parents, self._paths.last_names
        host_ns, gpu_ns = self._whole(self.host_ns), self._whole(self.gpu_ns)
        least_host = _LEAST_SHARE * int(self.host_ns.sum())
        least_gpu = _LEAST_SHARE * int(self.gpu_ns.sum())
        depth = np.zeros(len(parents), np.int64)
        large = []
        for chain, parent in enumerate(parents):
            depth[chain] = 0 if parent == NONE else depth[parent] + 1
            is_large = host_ns[chain] > least_host or gpu_ns[chain] > least_gpu
            if is_large and depth[chain] < MAX_DEPTH:
                large.append(chain)
        # a parent is as large as its children, so that it is kept where they are
        size = np.maximum(
            host_ns / max(int(self.host_ns.sum()), 1),
            gpu_ns / max(int(self.gpu_ns.sum()), 1),
        )
        large.sort(key=lambda chain: (-size[chain], depth[chain], chain))
        kept = sorted(large[:MAX_NODES])
        place = {chain: at for at, chain in enumerate(kept)}
        return tuple(
            CallNode(
                names[chain][:MAX_NAME],
                place.get(parents[chain], NONE),
                int(self.calls[chain]),
                int(host_ns[chain]),
                self._known(int(gpu_ns[chain])),
            )
            for chain in kept
        )

    def modules(self) -> tuple[GroupRow, ...]:
        """Add up by the innermost `nn.Module`; empty where none was recorded."""
        return self._grouped(_is_module)

    def functions(self) -> tuple[GroupRow, ...]:
        """Add up by the innermost function of the person's own files."""
        return self._grouped(_is_own_function)

    def _grouped(self, is_group: Callable[[str], bool]) -> tuple[GroupRow, ...]:
        """Add each chain to the innermost call in it that is a group."""
        group_of: list[str | None] = []
        rows: dict[str, list[int]] = {}
        parents, names = self._paths.parents, self._paths.last_names
        for chain, (parent, name) in enumerate(zip(parents, names, strict=True)):
            outer = None if parent == NONE else group_of[parent]
            group = name if is_group(name) else outer
            group_of.append(group)
            if group is None:
                continue
            row = rows.setdefault(group, [0, 0, 0])
            row[0] += int(self.calls[chain]) if group is name else 0
            row[1] += int(self.host_ns[chain])
            row[2] += int(self.gpu_ns[chain])
        groups = [
            GroupRow(name.removeprefix(_MODULE), calls, host_ns, self._known(gpu_ns))
            for name, (calls, host_ns, gpu_ns) in rows.items()
        ]
        groups.sort(key=lambda row: (-max(row.gpu_ns or 0, row.host_ns), row.name))
        return tuple(groups[:MAX_GROUPS])

    def _known(self, gpu_ns: int) -> int | None:
        return gpu_ns if self._gpu_recorded else None

    def _whole(self, own_ns: Int64s) -> Int64s:
        """Add to each chain what is within it; children come after their parents."""
        whole: Int64s = own_ns.copy()
        for chain in range(len(whole) - 1, -1, -1):
            parent = self._paths.parents[chain]
            if parent != NONE:
                whole[parent] += whole[chain]
        return whole


def _is_module(name: str) -> bool:
    return name.startswith(_MODULE)


def _is_own_function(name: str) -> bool:
    function = _FUNCTION.fullmatch(name)
    if function is None:
        return False
    file = function["file"]
    top = file.partition("/")[0].removesuffix(".py")
    return top not in sys.stdlib_module_names and not _LIBRARY.match(file)
