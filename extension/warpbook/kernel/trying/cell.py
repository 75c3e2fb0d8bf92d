"""A cell that is tried: its body on copies, what it does, and its graph."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from warpbook.kernel.trying.graph import BodyGraph
from warpbook.kernel.trying.reach import Reached
from warpbook.kernel.trying.saved_tensors import free_host_bytes
from warpbook.kernel.trying.source import Body, RunnableBody, copies_without_waiting
from warpbook_profiler.techniques.technique import Applied, CellActs


@dataclass(frozen=True)
class CopiedCell:
    """A cell whose body runs on copies, as experiments see it (`TriedCell`)."""

    body: Body
    plain: RunnableBody
    namespace: dict[str, Any]
    reached: Reached
    facts: CellActs
    _graph: BodyGraph = field(default_factory=BodyGraph)

    @property
    def modules(self) -> Sequence[torch.nn.Module]:
        return self.reached.modules

    @property
    def optimizers(self) -> Sequence[torch.optim.Optimizer]:
        return self.reached.optimizers

    @property
    def tensors(self) -> Sequence[tuple[str, torch.Tensor]]:
        return self.reached.tensors

    def run(self) -> Any:
        """Run the body as it is."""
        return self.plain.run(self.namespace)

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[Applied]:
        """Change nothing."""
        yield Applied(self.run)

    def is_kept(self, value: object) -> bool:
        """Return whether an object was there before the run: then it can be changed."""
        known: tuple[object, ...] = ()
        if isinstance(value, torch.nn.Module):
            known = tuple(self.reached.modules)
        elif isinstance(value, torch.optim.Optimizer):
            known = tuple(self.reached.optimizers)
        return any(item is value for item in known)

    def free_host_bytes(self) -> int:
        """Return the memory of this machine that is available."""
        return free_host_bytes()

    def without_waiting(self) -> Callable[[], Any]:
        """Return a body whose copies to a GPU return at once."""
        tree = copies_without_waiting(self.body, self.namespace)
        compiled = self.body.compiled(tree)
        return lambda: compiled.run(self.namespace)

    def as_graph(self) -> contextlib.AbstractContextManager[Applied]:
        """Replay the body as a CUDA graph, captured the first time.

        Raises:
            Refused: it can't be captured.
        """
        return self._graph.replaying(self.run, self.namespace, self.reached)
