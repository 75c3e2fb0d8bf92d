"""Mistakes that the text of a source shows, in Python, CUDA C++ and launch rules.

An operator is known by the space on both sides, as formatters put it: `float* x`,
`vector<float>` and `-1` hold none. Strings and comments stay, but for launch rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpbook_labs.mutation.edits import Change

_BLANKS = {
    ".cu": re.compile(
        r"""(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
        | //[^\n]* | /\*.*?\*/ | ^[ \t]*\#(?:[^\n\\]|\\.)*""",
        re.VERBOSE | re.MULTILINE | re.DOTALL,
    ),
    ".py": re.compile(
        r"""(?P<string>\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
        | \#[^\n]*""",
        re.VERBOSE | re.DOTALL,
    ),
}
_RULE = re.compile(r"^\W*launch:([^\n]*?)(?:$|num_warps|num_stages)", re.MULTILINE)

_COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_LOGIC = {"&&": "||", "||": "&&", "and": "or", "or": "and"}
_ARITHMETIC = {
    **{"+": "-", "-": "+", "*": "+", "/": "*", "//": "*", "%": "/", "**": "*"},
    **{"<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "&", "@": "*"},
}
_ARITHMETIC |= {f"{old}=": f"{new}=" for old, new in _ARITHMETIC.items()}
_SYMBOLS = {
    "comparison": _COMPARISONS,
    "condition": _LOGIC,
    "arithmetic": _ARITHMETIC,
}
_SYMBOL = re.compile(
    r"(?<=\s)(?:<<=|>>=|//=|\*\*=|<<|>>|&&|\|\||//|\*\*|[-<>=!+*/%&|^@]="
    r"|[-<>+*/%&|^@]|and|or)(?=\s)"
)
_NUMBER = re.compile(
    r"(?<![\w.])(0[xX][0-9a-fA-F]+|\d[\d_]*)(\.\d*)?([eE][+-]?\d+)?([uUlLfF]*)(?![\w.])"
)
_OPPOSITE = {
    **{"min": "max", "fminf": "fmaxf", "atomicMin": "atomicMax"},
    **{"minimum": "maximum", "any": "all", "ceil": "floor"},
}
_OPPOSITE |= {new: old for old, new in _OPPOSITE.items()}
_COMMUTATIVE = re.compile(r"(?:min|max|minimum|maximum|fminf|fmaxf|range)\($")
_NARROWER_ARRAYS = {
    **{"float64": "float32", "float32": "float16", "float16": "bfloat16"},
    **{"bfloat16": "float16", "int64": "int32", "int32": "int16", "int8": "uint8"},
}
_NARROWER = {
    **{"double": "float", "float": "__half", "int": "short", "int64_t": "int"},
    **{"unsigned": "unsigned short", "size_t": "int", "long long": "int"},
}
#: of an operator: where, and what stands there, by a table or with the groups' text
_PATTERNS: tuple[tuple[str, str, str | dict[str, str]], ...] = (
    ("extreme", r"\b\w+(?=\()", _OPPOSITE),
    ("constant", r"\b(?:True|False)\b", {"True": "False", "False": "True"}),
    ("condition", r"(?<!is )\bnot (?!in\b)|(?<=\()!(?=[\w(])", ""),
    ("initial value", r'float\("+\)|-?INFINITY|INT_MAX|INT_MIN', "0"),
    ("dtype", r"(?<=\.)\w+", _NARROWER_ARRAYS),
    ("dtype", r"\b(?:long long|\w+)(?= \w+(?:\[[^\]]*\])*(?:;| =))", _NARROWER),
    (
        "order",
        r"(?<![\w.])([\w.]+)( (?:-|/|//|%|<<|>>) )([\w.]+)(?![\w.\[(])",
        "{3}{2}{1}",
    ),
    ("tail", r"\(([^()]+) \+ [\w.]+ - 1\)(?= /)", "({1})"),
    ("tail", r"-\(-((?:[^()]|\([^()]*\))+)(?= // )", "({1}"),
    ("tail", r"[\w.]*(?:cdiv|ceil_div)\(([^(),]+), ([^(),]+)\)", "(({1}) / ({2}))"),
)
_ARGUMENTS = re.compile(r"(?:(?<=\()|(?<=, ))(?=([\w.]+), ([\w.]+)[,)])")


def blanked(source: str, suffix: str) -> str:
    """Return a source of the same length without the text of strings and comments."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", '"' if found["string"] else " ", found[0])

    return _BLANKS[suffix].sub(blank, source)


def token_changes(source: str, suffix: str) -> Iterator[Change]:
    """Yield mistakes of operators, constants, types and the order of arguments."""
    text = blanked(source, suffix)
    yield from _symbols(text)
    yield from (change for change, _ in _numbers(text))
    for operator, pattern, new in _PATTERNS:
        yield from replaced(operator, pattern, new, text, source)
    yield from _swapped(text)


def rule_changes(source: str) -> Iterator[Change]:
    """Yield mistakes of the launch rule: fewer threads, or other arguments."""
    for rule in _RULE.finditer(source):
        # all before is blank, so that offsets are those of the source
        text = re.sub(r"[^\n]", " ", source[: rule.start(1)]) + rule[1]
        yield from _symbols(text)
        yield from _swapped(text)
        for operator, pattern, new in _PATTERNS:
            if operator in ("order", "tail"):
                yield from replaced(operator, pattern, new, text, source)
        for change, is_more in _numbers(text):
            is_divisor = text[: change.begin].endswith((", ", "/ ")) and (
                "ceil_div(" in text[: change.begin].rpartition(")")[2]
            )
            # more threads than elements are no mistake
            if is_divisor == is_more:
                yield change


def replaced(
    operator: str, pattern: str, new: str | dict[str, str], text: str, source: str
) -> Iterator[Change]:
    """Yield a change where a pattern is in the blanked text."""
    for found in re.finditer(pattern, text, re.MULTILINE):
        begin = found.end() - len(found[0].lstrip())
        if isinstance(new, dict):
            if found[0] in new:
                yield Change(operator, begin, found.end(), new[found[0]])
            continue
        # the blanked text has no strings
        spans = [found.span(group) for group in range(len(found.groups()) + 1)]
        words = [source[first:end] for first, end in spans]
        yield Change(operator, begin, found.end(), new.format(*words))


def _symbols(text: str) -> Iterator[Change]:
    for found in _SYMBOL.finditer(text):
        for operator, table in _SYMBOLS.items():
            if found[0] in table:
                yield Change(operator, *found.span(), table[found[0]])


def _numbers(text: str) -> Iterator[tuple[Change, bool]]:
    """Yield changed numbers, and whether each is greater than what it replaces."""
    for found in _NUMBER.finditer(text):
        digits, fraction, exponent, suffix = found.groups(default="")
        if fraction or exponent:
            value = float(digits + fraction + exponent)
            news = [repr(value * 2 if value else 1.0)]
        else:
            value = int(digits, 0 if digits[:2] in ("0x", "0X") else 10)
            news = [str(value + 1), str(value - 1) if value else "(-1)"]
        for new in news:
            yield Change("constant", *found.span(), new + suffix), new == news[0]


def _swapped(text: str) -> Iterator[Change]:
    for found in _ARGUMENTS.finditer(text):
        before = text[: found.start()]
        is_named = before.rpartition("\n")[2].lstrip().startswith(("def ", "from "))
        if not is_named and not _COMMUTATIVE.search(before):
            begin, end = found.start(1), found.end(2)
            yield Change("order", begin, end, f"{found[2]}, {found[1]}")
