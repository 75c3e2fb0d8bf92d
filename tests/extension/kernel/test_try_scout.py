"""What the first run on copies notes of a cell."""

from __future__ import annotations

import torch

from warpbook.kernel.trying.scout import scouting


def test_a_number_in_the_hosts_memory_is_not_waited_for() -> None:
    """Adam counts its steps there: a graph is refused for what it is."""
    weight = torch.nn.Parameter(torch.ones(4, 4))
    weight.grad = torch.ones(4, 4)
    optimizer = torch.optim.Adam([weight], foreach=True)
    with scouting() as facts:
        optimizer.step()
        torch.ones(4).nonzero()
    assert facts.waits == set()
    assert "nonzero" in facts.on_host
    assert facts.optimizers == [optimizer]
