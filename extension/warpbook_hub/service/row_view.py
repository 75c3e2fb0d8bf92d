"""A learner's row of the class view, in words: page and updates say the same."""

from __future__ import annotations

from msgspec import Struct

from warpbook_hub.class_view import ClassRow, LabState

#: what each state is called, and its sign, which is shown beside its colour
STATES = {
    "nothing": ("not begun", "·"),
    "waits": ("waits", "…"),
    "runs": ("runs", "▸"),
    "parked": ("not gradable", "!"),
    "tried": ("tried", "○"),
    "passed": ("passed", "✓"),
}
_STUCK = {
    "equal failures": "three equal failures",
    "no progress": "no progress in 15 min",
}
_NOTHING = LabState("", "nothing", 0, 0.0, "", None, 0.0, 0.0, None)


class RowView(Struct, frozen=True):
    """A row; all of it is plain text."""

    person: str
    name: str
    username: str
    section: str
    team: str
    state: str
    state_words: str
    sign: str
    attempts: int
    right: str
    error: str
    last_ms: int | None
    gpu: str
    energy: str
    stuck: str


def row_view(row: ClassRow, lab: str) -> RowView:
    state = next((of for of in row.labs if of.publication == lab), _NOTHING)
    words, sign = STATES.get(state.state, (state.state, "?"))
    return RowView(
        row.person,
        row.name or row.username,
        row.username,
        row.section,
        row.team,
        state.state,
        words,
        sign,
        state.attempts,
        f"{100 * state.best_right:.0f} %" if state.attempts else "",
        state.last_error_kind,
        state.last_received_ms,
        f"{state.gpu_s:.1f} s" if state.gpu_s else "",
        f"{state.energy_j:,.0f} J" if state.energy_j else "",
        _STUCK.get(state.stuck or "", ""),
    )
