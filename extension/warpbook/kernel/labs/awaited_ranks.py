"""What coroutines of ranks await, done over `torch.distributed` in their processes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import torch
import torch.distributed as dist


class Request(Protocol):
    """What a coroutine yields: one exchange with other ranks."""

    #: "all_reduce", "all_gather", "reduce_scatter", "send" or "receive"
    kind: str
    #: what is given to it; of "receive" a tensor of the shape and dtype that comes
    x: torch.Tensor
    #: of "send" and "receive"
    peer: int | None


def run_awaiting(
    work: Coroutine[Request, Any, Any],
    note: Callable[[Request, list[torch.Size]], None],
) -> Any:
    """Run a coroutine on this rank of a group, and give what it returns.

    Args:
        work: yields requests, and is sent a new tensor for each; None for "send".
        note: is called with each request that was done, and the shapes that all ranks
            gave.
    """
    answer = None
    while True:
        try:
            request = work.send(answer)
        except StopIteration as end:
            return end.value
        answer, shapes = _done(request)
        note(request, shapes)


def _done(request: Request) -> tuple[torch.Tensor | None, list[torch.Size]]:
    # what was given stays as it was
    x = request.x.clone(memory_format=torch.contiguous_format)
    ranks = dist.get_world_size()
    shapes = [x.shape] * ranks
    if request.kind == "all_reduce":
        dist.all_reduce(x)
    elif request.kind == "send":
        dist.send(x, request.peer)
        return None, shapes
    elif request.kind == "receive":
        dist.recv(x, request.peer)
    elif request.kind == "all_gather":
        return _gathered(x)
    else:
        pieces = x.tensor_split(ranks)
        # both backends take as many rows of each rank
        padded = [_padded(piece, pieces[0].shape[0]) for piece in pieces]
        own = torch.empty_like(padded[0])
        dist.reduce_scatter(own, padded)
        x = own[: pieces[dist.get_rank()].shape[0]]
    return x, shapes


def _gathered(x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Size]]:
    own = torch.tensor([x.shape[0]], device=x.device)
    counts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, own)
    shapes = [torch.Size((int(count), *x.shape[1:])) for count in counts]
    most = max(shape[0] for shape in shapes)
    padded = [x.new_empty(most, *x.shape[1:]) for _ in shapes]
    dist.all_gather(padded, _padded(x, most))
    parts = [part[: shape[0]] for part, shape in zip(padded, shapes, strict=True)]
    return torch.cat(parts), shapes


def _padded(x: torch.Tensor, rows: int) -> torch.Tensor:
    return torch.cat([x, x.new_zeros(rows - x.shape[0], *x.shape[1:])])
