"""Labs in a notebook: `warpbook.labs.list()` and `warpbook.labs.open("vector-add")`."""

from __future__ import annotations

from typing import Any

from warpbook.kernel.runs.profile import Notice

_MISSING = (
    "Labs need more than is installed for this kernel ({}): "
    "pip install 'warpbook[labs]', then restart the kernel."
)


class NoLab:
    """Stands for a lab that can't be opened, and says why whatever is asked of it."""

    def __init__(self, notice: Notice) -> None:
        self._notice = notice

    def run(self, case: int = 1) -> Notice:
        return self._notice

    def check(self) -> Notice:
        return self._notice

    def submit(self) -> Notice:
        return self._notice

    def trace(self) -> Notice:
        return self._notice

    def solution(self) -> Notice:
        return self._notice

    def next(self) -> Notice:
        return self._notice

    def hint(self, number: int | None = None) -> Notice:
        return self._notice

    def __repr__(self) -> str:
        return self._notice.message

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return self._notice._repr_mimebundle_()


def parts() -> Any:
    """Give the module that does the work, or a notice of what to install."""
    try:
        from warpbook.kernel.labs import lab
    except ImportError as problem:
        return Notice(_MISSING.format(problem))
    return lab


def list() -> Any:
    """List all labs by track: what each needs, whether it can be done here."""
    from warpbook.kernel.labs.lab_list import LabList

    return LabList()


def open(lab: str, folder: str | None = None) -> Any:
    """Open a lab: put its files into a folder of its name, unless they are there.

    Args:
        lab: its id, or its folder.
        folder: where that folder is made; here if left out.

    Returns:
        The lab, with `.run()`, `.check()`, `.submit()`, `.trace()`, `.hint()`,
        `.solution()`, `.next()`; of one that can't be opened, these say why.
    """
    opened = parts()
    if isinstance(opened, Notice):
        return NoLab(opened)
    try:
        return opened.opened(lab, folder)
    except opened.PROBLEMS as problem:
        return NoLab(Notice(str(problem)))
