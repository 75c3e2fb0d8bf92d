"""What each engine of a simulated GPU did when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Engine = Literal["host", "h2d", "d2h", "compute"]


@dataclass(frozen=True)
class Bar:
    """What one engine did for a while."""

    engine: Engine
    label: str
    begin_ns: int
    end_ns: int
    #: of the source; 0 where it is not one
    line: int
