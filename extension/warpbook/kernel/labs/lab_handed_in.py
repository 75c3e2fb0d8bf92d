"""A submission of a lab that the course's hub has taken, as a notebook shows it."""

from __future__ import annotations

from html import escape

from warpbook.class_hub import ClassHub, PublishedLab
from warpbook.class_hub_words import receipt_rows
from warpbook.hub_client import HubProblem
from warpbook.hub_protocol import SubmissionReceipt, SubmissionState
from warpbook_labs.cards.html import STYLE, figures, words_html
from warpbook_monitors.plain_text import printable

#: what is there afterwards
_AFTERWARDS = (
    "`lab.next()` opens the next lab; `lab.solution()` shows the reference once the "
    "course's rules permit."
)


class HandedIn:
    """A receipt, and how it stands with the submission whenever it is shown."""

    def __init__(
        self,
        hub: ClassHub,
        lab: PublishedLab,
        receipt: SubmissionReceipt,
        source_words: str,
    ) -> None:
        """Keep what was handed in, and which version of the file that was."""
        self._hub, self._lab = hub, lab
        self.receipt = receipt
        self._source_words = source_words

    def state(self) -> SubmissionState | None:
        """Ask how it stands; None where the hub does not say."""
        try:
            return self._hub.state(self._lab, self.receipt.submission)
        except HubProblem:
            return None

    def __repr__(self) -> str:
        """Write the receipt, and how it stands."""
        rows = receipt_rows(self.receipt, self.state())
        lines = [f"{name}: {value}" for name, value in rows]
        return "\n".join(map(printable, [*lines, self._source_words, _AFTERWARDS]))

    def _repr_html_(self) -> str:
        page = self._hub.page(self._lab, self.receipt.submission)
        rows = receipt_rows(self.receipt, self.state())
        return (
            f'<div class="warpbook-lab"><style>{STYLE}</style>'
            '<p class="warpbook-verdict">Handed in: '
            f"{escape(printable(self._lab.title))}</p>{figures(rows)}"
            f'<p class="warpbook-quiet">{words_html(self._source_words)}</p>'
            f"<p>{words_html(_AFTERWARDS)}</p>"
            f'<p><a href="{escape(page)}" target="_blank" rel="noopener">'
            "Its page, with the result as soon as it is there</a></p></div>"
        )
