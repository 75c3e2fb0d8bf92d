"""An attention layer that returns weights that are not used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import MODULES
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.techniques.gpu.attention import attentions, averaged, fuse
from warpbook_profiler.techniques.technique import ChangeKind, Technique

_OPTION = "need_weights"
_TAKES = frozenset(("query", "key", "value"))


def need_weights(evidence: Evidence) -> Iterator[Proposal]:
    """Propose a layer that gives no weights, so that its attention is fused."""
    operators = evidence.operators
    is_taken, calls = _written(evidence.code)
    some = [
        (one, mean)
        for one in attentions(operators)
        if (mean := averaged(operators, one)) is not None
        and not (_is_taken(operators, mean) if is_taken is None else is_taken)
    ]
    if not some:
        return
    ways = Ways(evidence)
    means = np.array([mean for _, mean in some])
    time_ns, is_predicted, reason = fuse(evidence, ways, [one for one, _ in some])
    ways.drop_operators(means)
    time_ns += evidence.time_ns(operators.launched_within(means))
    yield Proposal(
        name="need-weights",
        title="Call the attention layer with need_weights=False.",
        evidence=(
            f"A layer writes {'×'.join(map(str, some[0][0].scores))} scores and "
            "averages them, and nothing uses the average: "
            f"{units.share(evidence.share(time_ns))} of the bare run."
        ),
        ways=ways,
        is_bound=not is_predicted,
        reason=reason,
        operator=operators.name(int(means[0])),
        line=calls[0].lineno if calls else None,
        code=_without(evidence.code, calls),
    )


def _is_taken(operators: Operators, mean: int) -> bool:
    """Tell whether an operator takes a tensor of the average's sizes after it."""
    table = operators.table
    batch, _, rows, columns = operators.operands(mean).dims[0]
    average = (batch, rows, columns)
    takes = [average in called.dims for called in table.operands]
    chosen = np.array([*takes, False])[table.operand]
    # a sum becomes an average in place
    chosen &= ~operators.named("aten::div_")
    return bool((chosen & (table.start_ns > table.end_ns[mean])).any())


def _written(code: CellCode) -> tuple[bool | None, list[ast.Call]]:
    """Tell whether a source takes a layer's weights, and give the calls that do not.

    Returns:
        None for a source that calls no such layer.
    """
    taken, left = None, []
    reads = {
        node.id
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    of_functions = {
        part
        for node in ast.walk(code.tree)
        if isinstance(node, ast.FunctionDef)
        for part in ast.walk(node)
    }
    for node in ast.walk(code.tree):
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=[_, ast.Name(id=name)])],
                value=ast.Call() as call,
            ):
                is_taken = name in reads
                # another cell may take what has a name
                is_sure = name.startswith("_") or node in of_functions
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=0)):
                is_taken, is_sure = False, True
            case _:
                continue
        given = {one.arg for one in call.keywords} & _TAKES
        if len(call.args) + len(given) < len(_TAKES):
            continue
        if ast.unparse(call.func).split(".")[0] in MODULES:
            continue
        taken = bool(taken) or is_taken
        if is_sure and not is_taken:
            left.append(call)
    return taken, left


def _without(code: CellCode, calls: list[ast.Call]) -> str:
    if len({ast.unparse(call.func) for call in calls}) != 1:
        # which of them is the layer is not sure
        return ""
    edit = SourceEdit(code)
    for call in calls:
        edit.arguments(call, {_OPTION: "False"})
    return edit.source()


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("need-weights",),
            what="`nn.MultiheadAttention` that returns weights that are not used",
            time="predicted; a bound where there is a backward pass",
            lab="which-sdpa",
        ),
    ),
    rule=need_weights,
    untried="Only you know whether anything uses the weights.",
)
