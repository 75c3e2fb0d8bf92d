"""A submission, as every engine is given it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.sandbox.limits import Limits


@dataclass(frozen=True)
class Submission:
    """A source for a lab, and how it is judged; made once, where it comes in."""

    loaded: LoadedLab
    source: str
    #: hidden cases are drawn from it; None asks for what the lab shows, and no more
    seed: int | None = None
    #: of processes that compile and run it; None has those of its language
    limits: Limits | None = None
    #: whether a GPU may be used where there is one
    use_gpu: bool = True
    #: whether what follows the first case that fails may be left out of the result
    stops_at_wrong: bool = False

    def with_source(self, source: str) -> Submission:
        """Return the same of another source, such as one of its configurations."""
        return replace(self, source=source)
