"""What a fuzz counts."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Surface:
    """What came of the inputs to one surface."""

    name: str
    inputs: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)
