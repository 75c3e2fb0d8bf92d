"""Whether the server can take work: what a hub or Kubernetes asks, and drains."""

from __future__ import annotations

from collections.abc import Callable


class Readiness:
    """What the server's parts say of themselves."""

    def __init__(self) -> None:
        """All is well."""
        self._parts: dict[str, Callable[[], str]] = {}
        #: set once, when the server is asked to stop
        self.is_draining = False

    def add(self, name: str, problem: Callable[[], str]) -> None:
        """Have a part asked, without which the server still takes work.

        Args:
            name: of the part.
            problem: what is wrong with it, in words; empty while nothing is.
        """
        self._parts[name] = problem

    @property
    def reason(self) -> str:
        """Why the server takes no work, in words; empty while it does."""
        return "The server is stopping." if self.is_draining else ""

    def problems(self) -> dict[str, str]:
        """What is wrong though the server takes work, by part."""
        problems = {name: problem() for name, problem in self._parts.items()}
        return {name: words for name, words in problems.items() if words}
