"""Calls of `torch.utils.checkpoint` in a source."""

from __future__ import annotations

import ast

from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import SourceEdit

#: arguments of checkpoint() that are its own
_OPTIONS = frozenset(
    "use_reentrant preserve_rng_state context_fn determinism_check debug "
    "early_stop".split()
)


def without_checkpoints(code: CellCode) -> str:
    """Write the cell with what checkpoint() is given called as it is."""
    edit, is_changed = SourceEdit(code), False
    for call in code.calls("checkpoint"):
        function, *arguments = call.node.args or [call.node]
        kept = [one for one in call.node.keywords if one.arg not in _OPTIONS]
        if function is call.node or len(kept) == len(call.node.keywords):
            # whose it is is not sure
            continue
        given = [edit.text(one) for one in arguments]
        given += [
            f"{one.arg}={text}" if one.arg else f"**{text}"
            for one in kept
            for text in [edit.text(one.value)]
        ]
        edit.replace(call.node, f"{edit.operand(function)}({', '.join(given)})")
        is_changed = True
    for call in code.calls("gradient_checkpointing_enable"):
        if isinstance(call.node.func, ast.Attribute):
            receiver = edit.operand(call.node.func.value)
            edit.replace(call.node, f"{receiver}.gradient_checkpointing_disable()")
            is_changed = True
    return edit.source() if is_changed else ""
