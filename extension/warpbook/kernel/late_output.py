"""An output of a cell that is filled in later, while other cells run."""

from __future__ import annotations

import uuid
from typing import Any

#: what is shown, by MIME type
Bundle = dict[str, str]


class LateOutput:
    """Shown now, under the cell that runs; changed later, from any thread."""

    def __init__(self, shell: Any, bundle: Bundle) -> None:
        """Show what is known already."""
        self._publisher = shell.display_pub
        self._transient = {"display_id": f"warpbook-{uuid.uuid4()}"}
        # another thread, or another cell, has another parent
        self._parent = getattr(self._publisher, "parent_header", None)
        self._publisher.publish(bundle, transient=self._transient)

    def update(self, bundle: Bundle) -> None:
        """Show this in its place."""
        session = getattr(self._publisher, "session", None)
        if session is None:
            # IPython on a terminal has no parents, and prints
            self._publisher.publish(bundle, transient=self._transient, update=True)
            return
        content = {"data": bundle, "metadata": {}, "transient": self._transient}
        session.send(
            self._publisher.pub_socket,
            "update_display_data",
            content,
            parent=self._parent,
            ident=self._publisher.topic,
        )
