"""Which reads of a name see a value that an assignment gives it."""

from __future__ import annotations

import ast

from warpbook_profiler.advice.code.value_flow import ValueFlow

#: of a name; one that is set or read more often is not followed
_MOST = 50


def reached(flow: ValueFlow, target: ast.Name) -> list[ast.Name] | None:
    """Return the reads of what an assignment sets a name to.

    The name may be set again in the same block, as in `d = d.sum(-1)`, or be another
    function's, too.

    Returns:
        None where that is not sure.
    """
    name, scope, block = target.id, flow.function(target), _block(flow, target)
    if flow.is_set_once(name):
        return flow.reads(name)
    if len(flow.sets(name)) + len(flow.reads(name)) > _MOST:
        return None
    sets = [one for one in flow.sets(name) if flow.function(one) is scope]
    reads = [one for one in flow.reads(name) if _may_see(flow, one, scope)]
    at_sets = [_place(flow, block, one) for one in sets]
    at_reads = [_place(flow, block, one) for one in reads]
    own = _place(flow, block, target)
    are_plain = all(isinstance(flow.statement(one), ast.Assign) for one in sets)
    # set or read elsewhere, by a function within, or twice in one statement
    if not are_plain or -1 in at_sets + at_reads or len({*at_sets}) < len(sets):
        return None
    if any(flow.function(one) is not scope for one in reads):
        return None
    # what a turn sets last, the next one may read
    if flow.loop(target) is not None and min(at_reads, default=0) <= min(at_sets):
        return None
    until = min((one for one in at_sets if one > own), default=len(block))
    return [read for read, at in zip(reads, at_reads, strict=True) if own < at <= until]


def _may_see(flow: ValueFlow, read: ast.Name, scope: ast.AST | None) -> bool:
    """Tell whether a read is in a function that does not set the name itself."""
    function = flow.function(read)
    if function is scope or (scope is not None and scope in flow.around(read)):
        return True
    return scope is None and not any(
        flow.function(one) is function for one in flow.sets(read.id)
    )


def _block(flow: ValueFlow, node: ast.AST) -> list[ast.stmt]:
    """Return the statements that a node's statement is one of."""
    statement = flow.statement(node)
    above = None if statement is None else flow.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        found = getattr(above, name, None)
        if isinstance(found, list) and statement in found:
            return found
    return []


def _place(flow: ValueFlow, block: list[ast.stmt], node: ast.AST) -> int:
    """Return which statement of a block a node is in; -1 for none."""
    around = {node, *flow.around(node)}
    return next((at for at, one in enumerate(block) if one in around), -1)
