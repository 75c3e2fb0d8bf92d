"""The card of a check or a submission, as static HTML.

It is drawn from plain values, so that cards that are kept, and those of a newer grader,
are shown too. Every string is somebody else's: bounded, then escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from warpbook.kernel.lab_host import host_html
from warpbook.kernel.lab_speed import speed_html
from warpbook_monitors import units
from warpbook_monitors.plain_text import bounded

_MOST_CASES = 60
_MOST_FINDINGS = 3
_MOST_LINES = 5
_MOST_LOG_LINES = 40
_WIDTH = 160
# every rule begins with the card's own class, so that no other output changes; said
# twice it counts for more than the page's own rules for tables
STYLE = """
.warpbook-lab { font-size: 13px; line-height: 1.4; max-width: 60em; }
.warpbook-lab p { margin: 0.3em 0; }
.warpbook-lab .warpbook-verdict { font-weight: 600; }
.warpbook-lab .warpbook-passed, .warpbook-lab .warpbook-failed,
.warpbook-lab .warpbook-warning { border-left: 3px solid #d08700;
  padding-left: 0.6em; }
.warpbook-lab .warpbook-passed { border-color: #2e8b57; }
.warpbook-lab .warpbook-failed { border-color: #c23b22; }
.warpbook-lab .warpbook-quiet { opacity: 0.75; }
.warpbook-lab h4 { font-size: inherit; margin: 0.6em 0 0.2em; }
.warpbook-lab summary { cursor: pointer; }
.warpbook-lab pre { font-size: 12px; margin: 0.3em 0; max-height: 24em;
  overflow: auto; padding: 0; white-space: pre; }
.warpbook-lab dl { display: grid; grid-template-columns: max-content 1fr;
  gap: 0 1em; margin: 0.3em 0; }
.warpbook-lab dt, .warpbook-lab dd { float: none; font-weight: normal;
  margin: 0; padding: 0; width: auto; }
.warpbook-lab dt { opacity: 0.75; }
.warpbook-lab dd { overflow-wrap: anywhere; }
.warpbook-lab table { border-collapse: collapse; color: inherit;
  font-size: inherit; margin: 0.3em 0; }
.warpbook-lab.warpbook-lab tr > th, .warpbook-lab.warpbook-lab tr > td {
  padding: 1px 1em 1px 0; text-align: left; vertical-align: top; }
.warpbook-lab.warpbook-lab tr > .warpbook-number { text-align: right;
  width: 5.6em; }
.warpbook-lab .warpbook-lines { table-layout: fixed; width: 100%; }
.warpbook-lab code { background: none; font-size: 12px; padding: 0; }
.warpbook-lab.warpbook-lab td > code { background: none; display: block;
  overflow: hidden; text-overflow: ellipsis; white-space: pre; }
"""
Plain = Mapping[str, Any]


def card_html(card: Plain, source: str) -> str:
    """Write a card; the source is quoted where a line of it is named."""
    result: Plain = card["result"]
    code = source.splitlines()
    cases: Sequence[Plain] = result.get("cases") or ()
    failed = next((each for each in cases if not each["passed"]), None)
    device: Plain = result.get("device") or {}
    on_device: Sequence[Plain] = device.get("cases") or ()
    failed_there = next((each for each in on_device if not each["passed"]), None)
    told = failed or max(cases, key=_effort, default=None)
    parts = [
        _verdict(card),
        *(_warning(each) for each in _strings(device.get("flags"))),
        _log(result),
        _cases("Cases", cases, result),
        _failure(failed, code),
        _cases(f"Cases on {one_line(device.get('gpu', ''))}", on_device, device),
        _failure(failed_there, code),
        speed_html(device),
        _work(told, code),
        host_html(told),
        _resources(result.get("resources") or ()),
        _printed(cases),
        _conditions(result),
    ]
    label = escape(f"Card of {one_line(result['lab'])}")
    return (
        f'<div class="warpbook-lab" role="region" aria-label="{label}">'
        f"<style>{STYLE}</style>{''.join(parts)}</div>"
    )


def one_line(text: object, most: int = _WIDTH) -> str:
    """Make somebody else's text one line, not long; it is not escaped yet."""
    return bounded(str(text).expandtabs(4), most)


def shown(text: object, most: int = _WIDTH) -> str:
    """Make somebody else's text fit for HTML."""
    return escape(one_line(text, most))


def figures(rows: Iterable[tuple[str, object]]) -> str:
    """Write names with one value each."""
    inner = "".join(
        f"<dt>{shown(name)}</dt><dd>{shown(value, 400)}</dd>" for name, value in rows
    )
    return f"<dl>{inner}</dl>" if inner else ""


def _verdict(card: Plain) -> str:
    result: Plain = card["result"]
    kind = "passed" if card["passed"] else "failed"
    mark = "✓" if card["passed"] else "✗"
    told = f"{mark} {result['lab']}: {result['status']}. {result['message']}"
    said = f'<p class="warpbook-verdict warpbook-{kind}">{shown(told, 600)}</p>'
    if card.get("submission") is None:
        return said + '<p class="warpbook-quiet">Practice: nothing was kept.</p>'
    graded = f"Submission {card['submission']}, {card['grading']}."
    if card["grading"] == "self-graded":
        graded += (
            " Nothing on your own machine keeps you from reading the hidden cases."
        )
    return f'{said}<p class="warpbook-quiet">{shown(graded)}</p>'


def _warning(words: str) -> str:
    told = f"For a person to judge: {words}"
    return f'<p class="warpbook-warning">{shown(told, 600)}</p>'


def _log(result: Plain) -> str:
    lines = str(result.get("log") or "").splitlines()
    if not lines:
        return ""
    more = len(lines) - _MOST_LOG_LINES
    end = [f"and {more:,} more line{'s' if more > 1 else ''}"] if more > 0 else []
    return _pre("The compiler said", [*lines[:_MOST_LOG_LINES], *end], is_open=True)


def _cases(title: str, cases: Sequence[Plain], result: Plain) -> str:
    if not cases:
        return ""
    rows = "".join(
        f"<tr><td>{'✓' if each['passed'] else '✗ failed'}</td>"
        f"<td>{'hidden' if each['is_hidden'] else 'shown'}</td>"
        f"<td>{shown(each['about'])}</td></tr>"
        for each in cases[:_MOST_CASES]
    )
    left_out = int(result.get("of") or 0) - min(len(cases), _MOST_CASES)
    untold = f"{left_out:,} more cases are" if left_out > 1 else "1 more case is"
    more = f"<p>{untold} not told.</p>" if left_out > 0 else ""
    told = (
        f"{shown(title)}: {result.get('right', 0):,} of {result.get('of', 0):,} right"
    )
    return (
        f"<details{_open(any(not each['passed'] for each in cases))}>"
        f"<summary>{told}</summary><table><thead><tr><th></th><th></th><th>kind of "
        f"case</th></tr></thead><tbody>{rows}</tbody></table>{more}</details>"
    )


def _failure(case: Plain | None, code: Sequence[str]) -> str:
    if case is None:
        return ""
    parts = [f"<h4>The first that fails: {shown(case['about'])}</h4>"]
    # sizes of hidden cases are not told, whatever the result holds
    sizes: Mapping[str, int] = {} if case["is_hidden"] else case.get("sizes") or {}
    if sizes:
        told = ", ".join(f"{name} = {size:,}" for name, size in sizes.items())
        parts.append(f"<p>{shown(told)}</p>")
    findings: Sequence[Plain] = case.get("findings") or ()
    for each in findings[:_MOST_FINDINGS]:
        told = f"{each['kind']}: {each['message']}"
        parts.append(f"<p>{shown(told, 400)}</p>")
        parts.append(_quoted(code, each.get("line")))
    more = len(findings) - _MOST_FINDINGS
    if more > 0:
        parts.append(f"<p>and {more} more finding{'s' if more > 1 else ''}</p>")
    wrong: Plain | None = case.get("wrong")
    if wrong is not None:
        place = ", ".join(map(str, wrong["index"]))
        parts.append(
            figures(
                [
                    *([("in call", case["call"])] if case.get("call") else []),
                    ("first wrong", f"{wrong['output']}[{place}]"),
                    ("got", wrong["got"]),
                    ("expected", wrong["expected"]),
                    ("allowed", wrong["allowed"]),
                    *_counted(case, wrong),
                ]
            )
        )
        if case.get("advice"):
            parts.append(f"<p>{shown(case['advice'], 400)}</p>")
    elif not findings:
        parts.append(f"<p>{shown(case['message'], 600)}</p>")
        found = re.match(r"Line (\d+):", str(case["message"]))
        parts.append(_quoted(code, int(found[1])) if found else "")
    return "".join(parts)


def _counted(case: Plain, wrong: Plain) -> list[tuple[str, str]]:
    """Say how many elements are wrong; of a hidden case that would tell its size."""
    if case["is_hidden"] or wrong.get("elements") is None:
        return []
    return [("wrong", f"{wrong['wrong']:,} of {wrong['elements']:,} elements")]


def _work(case: Plain | None, code: Sequence[str]) -> str:
    lines: Mapping[Any, Plain] = (case or {}).get("lines") or {}
    if case is None or not lines:
        return ""
    heads: tuple[str, ...] = (
        "warp instructions",
        "sectors",
        "at least",
        "bank conflicts",
    )
    names: tuple[str, ...] = (
        "warp_instructions",
        "global_sectors",
        "least_global_sectors",
        "bank_conflicts",
    )
    if not any(each["warp_instructions"] for each in lines.values()):
        # of Triton's blocks only the sectors are counted
        heads, names = heads[1:3], names[1:3]
    most = sorted(lines.items(), key=lambda pair: -pair[1][names[0]])
    rows = "".join(
        f"<tr><td><code>{shown(_stripped(code, int(number)), 70)}</code></td>"
        + "".join(f'<td class="warpbook-number">{each[name]:,}</td>' for name in names)
        + "</tr>"
        for number, each in most[:_MOST_LINES]
    )
    head = "".join(f'<th class="warpbook-number">{each}</th>' for each in heads)
    return (
        f"<details{_open(case['passed'])}><summary>Most work by line "
        f"({shown(case['about'])})</summary>"
        f'<table class="warpbook-lines"><thead><tr><th>line</th>{head}</tr>'
        f"</thead><tbody>{rows}</tbody></table></details>"
    )


def _resources(held: Sequence[Plain]) -> str:
    """Tell what a multiprocessor holds of each kernel, by a real compile."""
    if not held:
        return ""
    heads = ("registers", "spilled bytes", "threads", "blocks", "occupancy")
    rows = ""
    for each in held[:_MOST_LINES]:
        of: Plain = each["resources"]
        cells = (
            f"{of['registers']:,}",
            f"{of['spill_store_bytes']:,}",
            f"{each['threads_per_block']:,}",
            f"{each['blocks']:,}",
            units.share(each["occupancy"]),
        )
        figures_of = "".join(f'<td class="warpbook-number">{one}</td>' for one in cells)
        rows += f"<tr><td><code>{shown(of['kernel'], 60)}</code></td>{figures_of}</tr>"
    head = "".join(f'<th class="warpbook-number">{each}</th>' for each in heads)
    where = shown(held[0]["resources"]["architecture"], 20)
    return (
        f"<details><summary>What a multiprocessor holds ({where})</summary>"
        '<table class="warpbook-lines">'
        f"<thead><tr><th>kernel</th>{head}</tr></thead><tbody>{rows}</tbody></table></details>"
    )


def _printed(cases: Sequence[Plain]) -> str:
    case = next((each for each in cases if each.get("printed")), None)
    if case is None or case["is_hidden"]:
        return ""
    return _pre(f"Printed ({case['about']})", str(case["printed"]).splitlines())


def _conditions(result: Plain) -> str:
    told = [f"It was run {result['isolation']}."] if result.get("isolation") else []
    told += _strings(result.get("not_graded"))
    return "".join(f'<p class="warpbook-quiet">{shown(each, 400)}</p>' for each in told)


def _pre(title: str, lines: Sequence[str], is_open: bool = False) -> str:
    inner = "\n".join(shown(each) for each in lines[: _MOST_LOG_LINES + 1])
    return (
        f"<details{_open(is_open)}><summary>{shown(title)}</summary>"
        f'<pre tabindex="0">{inner}</pre></details>'
    )


def _quoted(code: Sequence[str], line: object) -> str:
    if not isinstance(line, int) or not 1 <= line <= len(code):
        return ""
    return f"<pre>{shown(_line(code, line))}</pre>"


def _line(code: Sequence[str], number: int) -> str:
    text = code[number - 1].expandtabs(4) if 1 <= number <= len(code) else ""
    return f"{number:>4} | {text}"


def _stripped(code: Sequence[str], number: int) -> str:
    text = code[number - 1].strip() if 1 <= number <= len(code) else ""
    return f"{number:>4} | {text}"


def _effort(case: Plain) -> int:
    on_host = case.get("host_counts") or {}
    if on_host:
        # of hidden cases there is no picture
        return 0 if case["is_hidden"] else int(on_host.get("total_ns", 0))
    return int((case.get("counts") or {}).get("warp_instructions", 0))


def _open(yes: bool) -> str:
    return " open" if yes else ""


def _strings(held: object) -> list[str]:
    return [str(each) for each in held] if isinstance(held, (list, tuple)) else []
