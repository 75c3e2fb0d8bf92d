"""What a technique is: its pattern, its questions, its trial, its lab, its documents.

This module needs no torch: experiments import it in the functions that use it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from warpbook_profiler.advice.proposal import Rule
from warpbook_profiler.checklist.facts import Question

if TYPE_CHECKING:
    import torch

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MOST_CHARACTERS = 40
#: why there is no experiment
BY_EDIT = "It needs an edit of the cell: --apply makes the edit where it is sure."


def _nothing() -> None:
    """Results are where the body puts them."""


@dataclass(frozen=True)
class Applied:
    """A cell that is changed for the moment."""

    run: Callable[[], Any]
    #: puts results where the unchanged body would, before they are looked at
    publish: Callable[[], None] = _nothing


@dataclass
class CellActs:
    """What a run of a cell's body did."""

    #: types of the devices that computed
    devices: set[str] = field(default_factory=set)
    #: matrix products and convolutions by device and dtype of their operands
    products: dict[tuple[str, torch.dtype], int] = field(default_factory=dict)
    #: the cell turned autocast on itself
    has_autocast: bool = False
    #: operators that wait for the GPU
    waits: set[str] = field(default_factory=set)
    #: operators on more than one number in the host's memory
    on_host: set[str] = field(default_factory=set)
    #: between host and GPU
    copies: int = 0
    #: memory of the host that was copied to a GPU and is not pinned, by its address
    pageable: set[int] = field(default_factory=set)
    #: those that were called by no other, in order
    modules: list[torch.nn.Module] = field(default_factory=list)
    #: all that ran, also within others
    convolutions: list[torch.nn.Conv2d] = field(default_factory=list)
    optimizers: list[torch.optim.Optimizer] = field(default_factory=list)
    #: memory of four-dimensional tensors that modules were called with, by address
    images: set[int] = field(default_factory=set)

    def product_dtypes(self, device: str) -> set[torch.dtype]:
        """Return the dtypes that were multiplied on a device."""
        return {dtype for where, dtype in self.products if where == device}

    @property
    def device(self) -> str:
        """Return the type of device that did the work."""
        return "cuda" if "cuda" in self.devices else "cpu"

    @property
    def why_no_gpu(self) -> str | None:
        """Return why what needs a GPU does not fit; None where one computes."""
        if self.device != "cuda":
            return "the cell computes nothing on a GPU."
        return None


class TriedCell(Protocol):
    """A cell whose body runs on copies; the kernel keeps and restores its state."""

    @property
    def facts(self) -> CellActs: ...

    @property
    def modules(self) -> Sequence[torch.nn.Module]:
        """Return the modules that were there before the run."""

    @property
    def optimizers(self) -> Sequence[torch.optim.Optimizer]:
        """Return the optimizers that were there before the run."""

    @property
    def tensors(self) -> Iterable[tuple[str, torch.Tensor]]:
        """Return the tensors that were there, each with the way that leads to it."""

    def run(self) -> Any:
        """Run the body as it is; return its last expression's value."""

    def is_kept(self, value: object) -> bool:
        """Return whether an object was there before the run: then it can be changed."""

    def without_waiting(self) -> Callable[[], Any]:
        """Return a body whose copies to a GPU return at once."""

    def free_host_bytes(self) -> int:
        """Return the memory of this machine that is available."""

    def as_graph(self) -> AbstractContextManager[Applied]:
        """Replay the body as a CUDA graph, captured the first time.

        Raises:
            Refused: it can't be captured.
        """


class Experiment(Protocol):
    """One change that `--try` measures on copies; a new object for each cell."""

    name: ClassVar[str]
    #: what to write in the cell, as a sentence
    advice: ClassVar[str]
    #: runs before it is measured, in which things are compiled and chosen
    warm_ups: ClassVar[int]
    #: the cheaper is tried first: a switch 0, memory laid out anew 1, a capture 2, a
    #: compiler 3
    cost: ClassVar[int]
    #: of the documents: what is tried, and where not
    what: ClassVar[str]
    not_where: ClassVar[str]

    def why_not(self, cell: TriedCell) -> str | None:
        """Return why it does not fit this cell; None if it does."""

    def applied(self, cell: TriedCell) -> AbstractContextManager[Applied]:
        """Apply it for one run of the cell, and undo it afterwards."""


@dataclass(frozen=True)
class ChangeKind:
    """Changes that are advised for one reason: a row of the documents."""

    names: tuple[str, ...]
    #: of the documents: what to change, and how much is known of its time
    what: str
    time: str
    #: of the checklist, which such a change answers with "no"
    answers: Question | None = None
    #: id of the lab that teaches it
    lab: str | None = None

    def __post_init__(self) -> None:
        """Look at the names.

        Raises:
            ValueError: one is none.
        """
        for name in self.names:
            if not _NAME.fullmatch(name) or len(name) > _MOST_CHARACTERS:
                raise ValueError(
                    f"{name[:60]!r} is not a name of a change: lower-case letters, "
                    f"digits and hyphens, {_MOST_CHARACTERS} at most."
                )


@dataclass(frozen=True)
class Technique:
    """All of one technique; what it has none of is empty, and `untried` says why."""

    changes: tuple[ChangeKind, ...] = ()
    #: recognises it in a trace, and proposes the changes
    rule: Rule | None = None
    questions: tuple[Question, ...] = ()
    experiments: tuple[type[Experiment], ...] = ()
    #: why `--try` has no change of these names; empty where it has
    untried: str = ""
    #: by a change's name: what results may differ by, relative to the largest value,
    #: where it computes in a smaller dtype
    roundings: Mapping[str, float] = field(default_factory=dict)
    #: its changes leave tensors in another order of memory
    lays_out: bool = False
    #: the package that brings it; empty for warpbook
    package: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of its changes."""
        return tuple(name for kind in self.changes for name in kind.names)

    @property
    def lab_of(self) -> Mapping[str, str | None]:
        """Return the lab of each change by its name."""
        return {name: kind.lab for kind in self.changes for name in kind.names}
