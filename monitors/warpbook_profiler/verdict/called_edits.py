"""Edits that rules write for functions and methods, of other cells and of the cell.

A report's rules look at the cell. Where it names a change, and the lines that it is
about are in what the cell calls, the same rules look at those, with the same trace.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping

from msgspec import structs

from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import changed_lines
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.rewriting.called_code import CalledCode, copied_code
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.change import Change
from warpbook_profiler.techniques.registry import technique_of
from warpbook_profiler.techniques.technique import Technique
from warpbook_profiler.verdict.bare_judging import replay_bare
from warpbook_profiler.verdict.metrics import measure

#: CPU time that rules may take: a busy machine leaves no edit out
_MOST_S = 5.0
#: is known of times and speeds
_NOTHING = (None, None, None, None, None)


def called_edits(
    trace: Trace, called: Mapping[str, str], names: Collection[str]
) -> dict[str, tuple[Change, ...]]:
    """Give edits by the change that the report names.

    Args:
        trace: of the cell.
        called: sources of functions by their name, of methods by "Class.method".
        names: of changes.

    Returns:
        Each with the whole cell. Of its change a rule that saw more may know another
        name. It is not sure: who else calls a function, no rule knows.
    """
    cell = CellCode(trace.run.source)
    is_known = cell.is_known and trace.run.is_torch and trace.run.gpu_name is not None
    if not (names and is_known and len(trace.on_gpu)):
        return {}
    until_s = time.thread_time() + _MOST_S
    copied, found = copied_code(cell.source, called), dict[str, tuple[Change, ...]]()
    if not (called or copied.flat.is_known):
        return {}
    evidence = replay_bare(trace, measure(trace)).evidence
    paths = copied.originals.values()
    parts = {path: CellCode(called[path]) for path in called if path in paths}
    for name in names:
        technique = technique_of(name)
        if technique is not None and not technique.package:
            edits = _edits(technique, evidence, copied, parts, until_s)
            changes = [_change(*one, cell.source) for one in edits]
            own = [one for one in changes if one.name == name]
            found[name] = tuple(own or changes)
    return found


def _edits(
    technique: Technique,
    evidence: Evidence,
    copied: CalledCode,
    parts: Mapping[str, CellCode],
    until_s: float,
) -> Iterator[tuple[Proposal, str]]:
    """Give edits of the cell with all that it calls, else of one after the other."""
    is_found = False
    for code in (copied.code, copied.flat):
        for one in _proposals(technique, evidence, code):
            text = copied.written(one.code)
            if text:
                is_found = True
                yield one, text
        if is_found:
            return
    several = dict[str, tuple[Proposal, dict[str, str]]]()
    for path, code in parts.items():
        if time.thread_time() > until_s:
            break
        for one in _proposals(technique, evidence, code):
            several.setdefault(one.name, (one, {}))[1].setdefault(path, one.code)
    for one, changed in several.values():
        text = copied.with_sources(changed)
        if text:
            yield one, text


def _proposals(
    technique: Technique, evidence: Evidence, code: CellCode
) -> Iterator[Proposal]:
    if technique.rule is not None and code.is_known:
        proposals = technique.rule(evidence.of_code(code))
        yield from (one for one in proposals if one.code)


def _change(proposal: Proposal, text: str, source: str) -> Change:
    """Give a change of which nothing but its edit is known."""
    name, title, seen = proposal.name, proposal.title, proposal.evidence
    change = Change(name, title, seen, "unknown", *_NOTHING, proposal.reason, "")
    return structs.replace(change, code=text, diff=changed_lines(source, text))
