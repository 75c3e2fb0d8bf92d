"""Grades several sources of `halves` by one referee, since PyTorch starts slowly.

    python -m tests.labs.host.several FOLDER

It reads names with source and whether it is timed, as JSON, and tells line by line what
became of each. A child is used again until it is lost, or a source spoils it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.labs.host.small_lab import BOUNDS
from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.engines.host.lane import HostRequest
from warpbook_labs.engines.host.session import Session
from warpbook_labs.gpu.ratio import Side
from warpbook_labs.gpu.speed import WrongOutput
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load
from warpbook_labs.sandbox import linux


class Again(Session):
    """Tries one source after the other."""

    def __init__(
        self, loaded: LoadedLab, is_timed: bool, has_gpu: bool = False
    ) -> None:
        self.own_request = HostRequest(
            str(loaded.folder),
            loaded.reference,
            tuple(public_cases(loaded.lab)[:1]),
            is_timed,
            has_gpu=False,
            bounds=BOUNDS,
            least_pairs=8,
            most_pairs=8,
        )
        super().__init__(self.own_request, loaded, None)

    def load(self, text: str, side: Side = "learner") -> str:
        """Have a source loaded in place of what was there; give why it can't be."""
        if not self.has_learner:
            self.start()
        return self._load(side, text)

    def failed(self, text: str) -> str:
        """Say in words why its first case fails; nothing if it passes."""
        problem = self.load(text)
        if problem:
            self.drop()
            return problem
        return self.tried(self.own_request.cases[0]).message

    def drop(self) -> None:
        """End the learner's process: the next source gets a new one."""
        self._drop()


def _told(session: Again, text: str, is_timed: bool) -> dict[str, Any]:
    words = session.failed(text)
    if words or not is_timed:
        return {"failed": words}
    try:
        timed = session.timed()
    except WrongOutput as problem:
        # it may have lost its process
        session.drop()
        return {"failed_when_timed": str(problem)}
    return {"learner_ns": timed.result.learner_ns}


def main() -> None:
    """Grade what stdin has, in its order."""
    linux.die_with_parent()
    linux.hide_memory()
    loaded = load(Path(sys.argv[1]))
    jobs = json.load(sys.stdin)
    session = Again(loaded, any(job["is_timed"] for job in jobs))
    for job in jobs:
        answer = _told(session, job["source"], job["is_timed"])
        sys.stdout.write(json.dumps({"name": job["name"], **answer}) + "\n")
        sys.stdout.flush()
        if job["spoils"]:
            session.drop()
    session.close()


if __name__ == "__main__":
    main()
