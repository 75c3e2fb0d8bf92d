"""Attention by hand: product, softmax, product, each of which writes all scores."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.attention.fused_call import fused_attention
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import BACKWARD, Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.softmaxes import softmaxes
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s
from warpbook_profiler.facts.traffic import only_passes
from warpbook_profiler.techniques.gpu.pointwise import FUSION
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_SOFTMAX_BACKWARD = "aten::_softmax_backward_data"
#: of the FLOPs of a forward pass, as scores are computed once more
_BACKWARD_FLOPS = 2.5
_PRODUCTS = ("aten::bmm", "aten::baddbmm", "aten::mm")
#: lay their operands out anew before they multiply; fused attention takes them as is
_LAYS_OUT = ("aten::einsum", "aten::matmul")
#: behind the last product: heads lie side by side in what fused attention gives
_JOINS_HEADS = ("aten::reshape", "aten::contiguous", "aten::flatten")
_MATH = "aten::_scaled_dot_product_attention_math"
#: so many operators may lie between a product and the softmax, as masks and scales do
_MOST_BETWEEN = 6
#: with those that make a mask
_MOST_NEAR = 16
#: and between the last product and the average of the weights, with a layer's output
_MOST_BEHIND = 8
#: of the weights over heads: a sum is divided afterwards
_AVERAGES = ("aten::mean", "aten::sum")
_MASKS = {"aten::masked_fill", "aten::where", "aten::add"}
#: what scores are scaled by, and a number's dtype there
_SCALES, _NUMBERS = ("aten::mul", "aten::div"), (("double",), ("long int",))
_MASKED_ROWS = "A row that its mask leaves out as a whole gives 0 then, and not NaN."
HALVES = ("c10::Half", "c10::BFloat16")
#: of the time without a mask, what one with it takes
_MASKED = 0.6


@dataclass(frozen=True)
class Attention:
    """One attention: its operators in order, from product to product."""

    members: tuple[int, ...]
    flops: int
    dtype: str
    scores: tuple[int, ...]
    #: of query and key
    head: int


def attention(evidence: Evidence) -> Iterator[Proposal]:
    """Propose one fused kernel for what is written as three and more."""
    operators = evidence.operators
    found = [one for one in attentions(operators) if averaged(operators, one) is None]
    if not found:
        return
    by_backend = operators.within(np.flatnonzero(operators.named(_MATH)))
    for in_math in (False, True):
        some = [one for one in found if by_backend[one.members[0]] == in_math]
        if some:
            yield _proposal(evidence, some, in_math)


def _proposal(evidence: Evidence, found: list[Attention], in_math: bool) -> Proposal:
    operators, ways = evidence.operators, Ways(evidence)
    time_ns, is_predicted, reason = fuse(evidence, ways, found)
    one = found[0]
    calls = "once" if len(found) == 1 else f"{len(found):,} times"
    evidence_text = (
        f"Two matrix products and a softmax run as separate kernels {calls}, and write "
        f"{'×'.join(map(str, one.scores))} scores to memory: "
        f"{units.share(evidence.share(time_ns))} of the bare run."
    )
    if in_math:
        title = (
            "Let scaled_dot_product_attention use a fused backend: its math backend "
            "ran."
        )
        code = _any_backend(evidence.code)
    else:
        title = "Use torch.nn.functional.scaled_dot_product_attention."
        has_number = all(_is_scaled_by_number(operators, one) for one in found)
        code = fused_attention(evidence.code, has_number)
        # the edit may let some of them be
        is_predicted &= not (code and CellCode(code).calls("softmax"))
        if code.count("attn_mask=") > evidence.code.source.count("attn_mask="):
            reason = f"{reason} {_MASKED_ROWS}".lstrip()
    return Proposal(
        name="sdpa-backend" if in_math else "sdpa",
        title=title,
        evidence=evidence_text,
        ways=ways,
        is_bound=not is_predicted,
        reason=reason,
        operator=operators.name(int(operators.outer_of(np.array([one.members[0]]))[0])),
        line=evidence.code.first_line("softmax")
        or evidence.line_at(int(operators.table.start_ns[one.members[0]])),
        code=code,
    )


def _is_scaled_by_number(operators: Operators, one: Attention) -> bool:
    scales = [at for at in one.members if operators.name(at).rstrip("_") in _SCALES]
    return all(
        operators.operands(at).dims[1:2] == ((),)
        and operators.operands(at).dtypes[1:2] in _NUMBERS
        for at in scales
    )


def _any_backend(code: CellCode) -> str:
    """Write the cell without the choice of torch's slowest backend."""
    edit = SourceEdit(code)
    for node in ast.walk(code.tree):
        if isinstance(node, ast.With):
            for item in node.items:
                chosen = ast.unparse(item.context_expr)
                if "sdpa_kernel(" in chosen and ".MATH" in chosen:
                    edit.unwrap(node, item)
    return edit.source()


def fuse(
    evidence: Evidence, ways: Ways, found: list[Attention]
) -> tuple[int, bool, str]:
    """Have one kernel each do the work of attentions.

    Returns:
        what they take now in ns, whether their time is known then, and a reason.
    """
    operators, chip = evidence.operators, evidence.chip
    time_ns, is_predicted, reason, dtype = 0, True, "", ""
    for one in found:
        members = np.array(one.members, np.int64)
        kept = operators.launched_within(members[:1])
        call = _math_call(operators, one)
        dtype = one.dtype
        if call == NONE:
            copies = _copies_around(operators, one)
        else:
            # it widens half precision, and looks for rows that are masked as a whole
            copies = np.setdiff1d(_launching_within(operators, call), members)
            types = chain.from_iterable(operators.operands(at).dtypes for at in copies)
            dtype = next((each for each in types if each in HALVES), dtype)
        ways.drop_operators(copies)
        every = np.concatenate([members, copies])
        time_ns += evidence.time_ns(operators.launched_within(every))
        ways.join_operators([one.members])
        span = None if chip is None else chip.attend(one.flops, dtype, one.head)
        if span is None:
            is_predicted = False
            continue
        ways.resize(kept, _where_masked(operators, one, span))
    if dtype not in HALVES:
        reason = "Flash attention is faster, but needs float16 or bfloat16."
    if operators.named(_SOFTMAX_BACKWARD).any():
        is_predicted = False
        reason = (
            "The backward pass also becomes faster; the trace does not show by how "
            "much."
        )
        time_ns += _fuse_backward(evidence, ways, found)
    return time_ns, is_predicted, reason


def _where_masked(operators: Operators, one: Attention, span: Span) -> Span:
    """Give half of a time at least if there is a mask: it is causal, as most are."""
    if not is_masked(operators, one):
        return span
    return Span(span.low_ns / 2, span.usual_ns * _MASKED, span.high_ns)


def _fuse_backward(evidence: Evidence, ways: Ways, found: list[Attention]) -> int:
    """Have fused kernels do what passes over scores backward; give its time now."""
    operators, chip = evidence.operators, evidence.chip
    if chip is None:
        return 0
    spans = []
    for one in found:
        flops = _BACKWARD_FLOPS * one.flops
        span = chip.attend(flops, one.dtype, one.head, is_backward=True)
        if span is None:
            return 0
        spans.append(_where_masked(operators, one, span))
    table, launching = operators.table, operators.launching
    sizes = {math.prod(one.scores) for one in found}
    takes = [
        any(math.prod(dims) in sizes for dims in one.dims) for one in table.operands
    ]
    chosen = np.array([*takes, False])[table.operand[launching]]
    is_back = np.array([name.startswith(BACKWARD) for name in table.names])
    chosen &= is_back[table.name[operators.outer_of(launching)]]
    kernels = operators.launched_within(launching[chosen])
    centres = operators.launched_within(
        np.flatnonzero(operators.named(_SOFTMAX_BACKWARD))
    )
    kept = np.intersect1d(kernels, centres)
    if len(kept):
        ways.drop(np.setdiff1d(kernels, kept))
        ways.resize(kept, Span(*map(sum, zip(*spans, strict=True))))
    return evidence.time_ns(kernels) if len(kept) else 0


def _math_call(operators: Operators, one: Attention) -> int:
    """Give the call of the math backend that an attention is of; NONE without one."""
    position = int(operators.parent[one.members[0]])
    while position != NONE and operators.name(position) != _MATH:
        position = int(operators.parent[position])
    return position


def _launching_within(operators: Operators, call: int) -> Int64s:
    """Give the operators within a call that launch something, on its own thread."""
    table, launching = operators.table, operators.launching
    until = np.searchsorted(table.start_ns, table.end_ns[call])
    begin, end = np.searchsorted(launching, [call, until])
    inside: Int64s = launching[begin:end]
    own: Int64s = inside[table.track[inside] == table.track[call]]
    return own


def _copies_around(operators: Operators, one: Attention) -> Int64s:
    """Give the copies that only lay out what is multiplied, and what comes of it."""
    launching = operators.launching
    is_copy = operators.named("aten::copy_")
    copies: list[int] = []
    first, last = one.members[0], one.members[-1]
    for product in (first, last):
        around = int(operators.parent[product])
        if around != NONE and operators.name(around) in _LAYS_OUT:
            inside = _launching_within(operators, around)
            copies += inside[is_copy[inside]].tolist()
    # fused attention gives heads side by side where it was given them so
    behind = launching[np.searchsorted(launching, last) + 1 :][:1]
    if copies and is_copy[behind].any():
        outer = operators.name(int(operators.outer_of(behind)[0]))
        a, b = (
            operators.operands(last).dims[at]
            for at in _matrices(operators.operands(last).dims)
        )
        made = math.prod(a[:-1]) * b[-1]
        if (
            outer in _JOINS_HEADS
            and math.prod(_first_dims(operators, int(behind[0]))) == made
        ):
            copies += behind.tolist()
    return np.array(
        [at for at in dict.fromkeys(copies) if at not in one.members], np.int64
    )


def is_masked(operators: Operators, one: Attention) -> bool:
    names = {operators.name(member).rstrip("_") for member in one.members}
    return bool(names & _MASKS)


def averaged(operators: Operators, one: Attention) -> int | None:
    """Give the operator that averages the weights over heads, as torch's layer does."""
    launching = operators.launching
    place = int(np.searchsorted(launching, one.members[-1])) + 1
    behind: list[int] = launching[place : place + _MOST_BEHIND].tolist()
    for position in behind:
        dims = _first_dims(operators, position)
        if (
            operators.name(position) in _AVERAGES
            and len(dims) == 4
            and math.prod(dims) == math.prod(one.scores)
            and dims[-2:] == one.scores[-2:]
        ):
            return position
    return None


def attentions(operators: Operators) -> Iterator[Attention]:
    """Find products, softmaxes and products in the order of their calls."""
    launching = operators.launching
    is_product = operators.named(*_PRODUCTS)
    for centre in softmaxes(operators):
        scores = _first_dims(operators, int(launching[centre]))
        if len(scores) < 2:
            continue
        before = _nearest(operators, launching, is_product, centre, -1, scores)
        after = _nearest(operators, launching, is_product, centre, 1, scores)
        if before is None or after is None:
            continue
        members = launching[before : after + 1]
        is_member = [_takes(operators, one, scores) for one in members[1:-1].tolist()]
        members = members[[True, *is_member, True]]
        made, taken = (operators.operands(int(launching[at])) for at in (before, after))
        depth = made.dims[_matrices(made.dims)[0]][-1]
        width = taken.dims[_matrices(taken.dims)[1]][-1]
        yield Attention(
            tuple(members.tolist()),
            2 * math.prod(scores) * (depth + width),
            made.dtypes[0],
            scores,
            depth,
        )


def _first_dims(operators: Operators, position: int) -> tuple[int, ...]:
    dims = operators.operands(position).dims
    return dims[0] if dims else ()


def _nearest(
    operators: Operators,
    launching: Int64s,
    is_product: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    centre: int,
    step: int,
    scores: tuple[int, ...],
) -> int | None:
    thread = operators.table.track[launching[centre]]
    left = _MOST_BETWEEN
    for at in range(centre + step, centre + step * (_MOST_NEAR + 1), step):
        if not 0 <= at < len(launching) or not left:
            return None
        position = int(launching[at])
        if operators.table.track[position] != thread:
            continue
        if is_product[position]:
            return at if _fits(operators, position, step, scores) else None
        if _takes(operators, position, scores):
            if not only_passes(operators.name(position)):
                return None
            left -= 1
    return None


def _takes(operators: Operators, position: int, scores: tuple[int, ...]) -> bool:
    """Tell whether an operator takes scores; what makes their mask does not."""
    size = math.prod(scores)
    return any(math.prod(dims) == size for dims in operators.operands(position).dims)


def _fits(
    operators: Operators, position: int, step: int, scores: tuple[int, ...]
) -> bool:
    dims = operators.operands(position).dims
    matrices = _matrices(dims)
    if len(matrices) < 2:
        return False
    a, b = (dims[at] for at in matrices[:2])
    made = math.prod(a[:-1]) * b[-1] if step < 0 else math.prod(a)
    rows, columns = (a[-2], b[-1]) if step < 0 else (a[-2], a[-1])
    return made == math.prod(scores) and (rows, columns) == scores[-2:]


def _matrices(dims: tuple[tuple[int, ...], ...]) -> list[int]:
    """Give the positions of the two that are multiplied."""
    large = [at for at, sizes in enumerate(dims) if len(sizes) >= 2]
    if len(large) == 3:
        a, b, out = (dims[at] for at in large)
        if a[-1] == b[-2] and out[-2:] == (a[-2], b[-1]):
            # it was told where to put the result; else what it adds to comes first
            return large[:2]
    return large[-2:]


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("sdpa", "sdpa-backend"),
            what="attention written by hand, or the math backend: fused attention",
            time="predicted; a bound where there is a backward pass",
            answers=FUSION,
            lab="which-sdpa",
        ),
    ),
    rule=attention,
    untried=BY_EDIT,
)
