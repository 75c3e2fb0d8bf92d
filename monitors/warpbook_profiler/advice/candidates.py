"""Which liberal edits belong to which change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice

from msgspec import structs

from warpbook_profiler.advice.attention.fused_call import fused_attention
from warpbook_profiler.advice.attention.written_softmax import with_softmax
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.chosen_rows import chosen_rows
from warpbook_profiler.advice.code.operations import assigned, with_operators
from warpbook_profiler.advice.code.source_edit import changed_lines
from warpbook_profiler.advice.rewriting.batches import batches
from warpbook_profiler.advice.rewriting.called_code import CalledCode, copied_code
from warpbook_profiler.advice.rewriting.choices import choices
from warpbook_profiler.advice.rewriting.devices import made_there
from warpbook_profiler.advice.rewriting.folded_norms import folded_norms
from warpbook_profiler.advice.rewriting.fused_blocks import fused_blocks
from warpbook_profiler.advice.rewriting.graphs import graphs
from warpbook_profiler.advice.rewriting.growths import growths
from warpbook_profiler.advice.rewriting.host_reads import read_after
from warpbook_profiler.advice.rewriting.layouts import channels_last
from warpbook_profiler.advice.rewriting.masked_stores import masked_stores
from warpbook_profiler.advice.rewriting.masked_sums import masked_sums
from warpbook_profiler.advice.rewriting.modules_at_once import (
    modules_at_once,
    products_at_once,
)
from warpbook_profiler.advice.rewriting.plain_forms import plain
from warpbook_profiler.advice.rewriting.scans import scans
from warpbook_profiler.advice.rewriting.tensor_core_products import (
    in_bfloat16,
    in_tf32,
    padded_products,
)
from warpbook_profiler.advice.rewriting.whole_cells import whole_cells
from warpbook_profiler.advice.translation.checkpoint_code import without_checkpoints
from warpbook_profiler.advice.translation.compiled_calls import (
    compiled_calls,
    compiled_methods,
)
from warpbook_profiler.advice.translation.element_reads import listed_elements
from warpbook_profiler.advice.translation.foreach import foreach
from warpbook_profiler.advice.translation.grouped_heads import grouped
from warpbook_profiler.advice.translation.lists_at_once import lists_at_once
from warpbook_profiler.advice.translation.numpy_code import without_numpy
from warpbook_profiler.model.change import Change

_Rewrite = Callable[[CellCode], Iterator[str]]


def _by_name(code: CellCode) -> Iterator[str]:
    """Give the cell without what seems to widen heads of keys."""
    if text := grouped(code, is_sure=False):
        yield text


def _attentions(code: CellCode) -> Iterator[str]:
    """Give the cell with its attentions fused."""
    plainly = with_softmax(with_operators(assigned(code)))
    if text := fused_attention(plainly, True, False):
        yield text


def _rows(code: CellCode) -> Iterator[str]:
    if text := chosen_rows(code, is_sure=False):
        yield text


def _kept(code: CellCode) -> Iterator[str]:
    if text := without_checkpoints(code):
        yield text


def _on_gpu(code: CellCode) -> Iterator[str]:
    if text := without_numpy(code, is_sure=False):
        yield text


#: by the change's name
_REWRITES: dict[str, tuple[_Rewrite, ...]] = {
    "whole-tensor": (batches,),
    "batch-linalg": (batches,),
    "stack-results": (read_after, batches),
    "read-once": (read_after, listed_elements, batches),
    "print-once": (read_after, listed_elements),
    "tensor-once": (lists_at_once,),
    "scan": (scans,),
    "cuda-graph": (graphs,),
    "branch-on-gpu": (choices,),
    "allocate-once": (growths,),
    "cat-once": (growths,),
    "keep-mask": (masked_sums, masked_stores),
    "fused-optimizer": (foreach,),
    "foreach-ema": (foreach,),
    "foreach-clip": (foreach,),
    "experts-at-once": (modules_at_once, products_at_once),
    "whole-gru": (whole_cells,),
    "whole-lstm": (whole_cells,),
    "whole-rnn": (whole_cells,),
    "fold-bn": (folded_norms,),
    "channels-last": (channels_last,),
    "gqa": (_by_name,),
    "make-on-gpu": (made_there,),
    "sdpa": (_attentions,),
    "index-not-one-hot": (_rows,),
    "checkpoint-off": (_kept,),
    "stay-on-gpu": (_on_gpu,),
    "fuse": (compiled_calls,),
    "tf32": (in_tf32,),
    "bf16": (in_bfloat16,),
    "pad": (padded_products,),
}
#: tried last where a report does not name them
_OTHERS = (
    *("experts-at-once", "scan", "whole-tensor", "read-once", "branch-on-gpu"),
    *("allocate-once", "make-on-gpu"),
)
#: it keeps a loop that others would take away, so it comes after them
_KEEPS_LOOPS = "cuda-graph"
#: these take what a cell calls as it is
_OF_CALLS = frozenset("fuse tf32 bf16 pad fold-bn channels-last".split())
#: these are about what a call returns, wherever that is computed
_OF_RETURNS = frozenset("read-once print-once stack-results".split())
#: of one change, and of all
_MOST, _MOST_IN_ALL = 4, 12


def liberal_edits(
    source: str,
    changes: tuple[Change, ...],
    only_named: bool = False,
    called: Mapping[str, str] | None = None,
    written: Mapping[str, tuple[Change, ...]] | None = None,
    unrecorded: str = "",
) -> Iterator[Change]:
    """Give edits that may be wrong: each must be run on copies before it is offered.

    Args:
        source: the cell.
        changes: what its report advises; those with an edit of their own get no other.
        only_named: leave out the changes that the report does not name.
        called: sources of other cells that it reaches: of functions by their name, of
            methods by "Class.method".
        written: edits of those that rules wrote, by the change of the report.
        unrecorded: the cell without autograd, where the report advises that.
    """
    code, seen = CellCode(source), set[str]()
    if code.is_known:
        named = [change for change in changes if not change.code]
        at_last = [change for change in named if change.name == _KEEPS_LOOPS]
        named = [change for change in named if change not in at_last]
        others = [] if only_named else _unnamed(changes)
        copied = copied_code(code.source, called or {})
        edits = _edits(code, copied, [*named, *others], written or {})
        if unrecorded and at_last:
            # no graph is captured of turns that autograd records
            code = CellCode(unrecorded)
            copied = copied_code(code.source, called or {})
        graphs_ = _edits(code, copied, at_last, written or {})
        for one in islice(chain(edits, graphs_), _MOST_IN_ALL):
            # what the cell calls may know torch where the cell does not
            text = one.code.strip().removeprefix("import torch\n")
            if text not in seen:
                seen.add(text)
                yield structs.replace(one, diff=changed_lines(source, one.code))


def _edits(
    code: CellCode,
    copied: CalledCode,
    changes: list[Change],
    written: Mapping[str, tuple[Change, ...]],
) -> Iterator[Change]:
    for change in changes:
        yield from written.get(change.name, ())
        # what is called may keep something, which a graph does not
        is_below = change.name == _KEEPS_LOOPS and copied.code.is_known
        texts = [] if is_below else [*islice(_written(code, change.name), _MOST)]
        if change.name == "fuse":
            texts += compiled_methods(code, copied.methods)
            texts += fused_blocks(code)
        if change.name not in _OF_CALLS:
            there = islice(_written(copied.code, change.name), _MOST)
            texts += map(copied.written, there)
            if not any(texts) or change.name in _OF_RETURNS:
                there = islice(_written(copied.flat, change.name), _MOST)
                texts += map(copied.written, there)
        for text in [one for one in texts if one][:_MOST]:
            yield structs.replace(change, code=text)


def _written(code: CellCode, name: str) -> Iterator[str]:
    """Write a cell as rewrites do; in plain forms if they do not read it as it is."""
    rewrites, is_found = _REWRITES.get(name, ()), False
    for rewrite in rewrites if code.is_known else ():
        for text in rewrite(code):
            is_found = True
            yield text
    if rewrites and not is_found and (other := plain(code)[0]).is_known:
        for rewrite in rewrites:
            yield from rewrite(other)


def _unnamed(changes: tuple[Change, ...]) -> list[Change]:
    known = {change.name for change in changes}
    return [
        Change(name, "", "", "unknown", None, None, None, None, None, "", "")
        for name in _OTHERS
        if name not in known
    ]
