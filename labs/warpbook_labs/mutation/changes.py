"""Mistakes that a source may have, and mutants with one of them.

An operator is known by the space on both sides, as formatters put it: `float* x`,
`vector<float>` and `-1` hold none. Strings and comments stay, but for launch rules.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct


class Change(NamedTuple):
    """A piece of a source that is replaced, by offsets in characters."""

    operator: str
    begin: int
    end: int
    new: str


class Mutant(Struct, frozen=True):
    """A source that differs from a right one in one place."""

    #: of the right solution, from the lab's folder
    file: str
    line: int
    operator: str
    #: the lines that differ, on one line
    before: str
    after: str
    source: str

    @property
    def words(self) -> str:
        """Where it differs, and how."""
        return (
            f"{self.file}:{self.line}: {self.before} -> {self.after} ({self.operator})"
        )


#: what a replacement needs before the source
_HEADERS = {"__half": "#include <cuda_fp16.h>\n"}


def mutants(file: str, source: str, changes: Iterable[Change]) -> Iterator[Mutant]:
    """Apply each change by itself; the same text is yielded once."""
    seen = {_squeezed(source)}
    for operator, begin, end, new in changes:
        text = source[:begin] + new + source[end:]
        if _squeezed(text) in seen:
            continue
        seen.add(_squeezed(text))
        first, last = source.rfind("\n", 0, begin) + 1, source.find("\n", end)
        last = len(source) if last < 0 else last
        yield Mutant(
            file,
            source.count("\n", 0, begin) + 1,
            operator,
            _squeezed(source[first:last]),
            _squeezed(source[first:begin] + new + source[end:last]),
            _HEADERS.get(new, "") + text,
        )


def _squeezed(text: str) -> str:
    return " ".join(text.split())


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


_OPPOSITE_TESTS = {ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}
_ORDERING = re.compile(r"sync|wait|barrier|fence|record")
_PLACES_OF_MASKS = {"load": 1, "store": 2}


def python_changes(source: str) -> Iterator[Change]:
    """Yield mistakes of a source in Python, its launch rule too.

    Raises:
        SyntaxError: it is no Python.
    """
    yield from rule_changes(source)
    yield from token_changes(source, ".py")
    tree = _Tree(source)
    for node in ast.walk(ast.parse(source)):
        yield from tree.expression(node)
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                yield from tree.left_out(node, statements)


class _Tree:
    def __init__(self, source: str) -> None:
        self._source, self._lines = source, source.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def expression(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                if new := _OPPOSITE_TESTS.get(type(op)):
                    begin, end = self._span(left)[1], self._span(right)[0]
                    yield Change("comparison", begin, end, f" {new} ")
            case ast.If(test=test) | ast.IfExp(test=test):
                yield self._new("condition", test, "True")
                yield self._new("condition", test, "False")
            case ast.BoolOp(op=op, values=values):
                for value in values:
                    yield self._new("condition", value, str(isinstance(op, ast.And)))
            case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
                yield self._new("mask", node, f"({self._text(left)})")
                yield self._new("mask", node, f"({self._text(right)})")
            case ast.keyword(arg="mask" | "other", value=value):
                yield self._new("mask", value, "None")
            case ast.Slice(upper=ast.expr() as upper) if self._text(
                upper
            ).isidentifier():
                yield self._new("tail", upper, f"{self._text(upper)} - 1")
            case ast.Call(func=ast.Name("range"), args=[*_, stop]) if (
                len(node.args) < 3
            ):
                yield self._new("tail", stop, f"{self._text(stop)} - 1")
            case ast.Call(func=ast.Attribute(attr=name), args=arguments):
                place = _PLACES_OF_MASKS.get(name, len(arguments))
                for mask in arguments[place : place + 1]:
                    yield self._new("mask", mask, "None")

    def left_out(self, parent: ast.AST, body: Sequence[ast.AST]) -> Iterator[Change]:
        """Yield changes that leave a statement of a body out."""
        known: set[str] = set()
        in_branch = isinstance(parent, (ast.If, ast.For, ast.While))
        for statement in body:
            match statement:
                case ast.Expr(ast.Call(func=called)):
                    is_ordering = _ORDERING.search(self._text(called))
                    operator = "barrier" if is_ordering else "statement"
                    yield self._new(operator, statement, "pass")
                case ast.AugAssign() | ast.Continue() | ast.Break() | ast.Raise():
                    yield self._new("statement", statement, "pass")
                case ast.Return() if in_branch:
                    yield self._new("statement", statement, "pass")
                case ast.Assign(targets=[ast.Attribute()]):
                    yield self._new("state", statement, "pass")
                case ast.Assign(targets=[ast.Subscript()]):
                    yield self._new("statement", statement, "pass")
                case ast.Assign(targets=[ast.Name(name)]):
                    # a name without a value is no subtle mistake
                    if in_branch or name in known:
                        yield self._new("statement", statement, "pass")
                    known.add(name)
                case ast.With(items=[ast.withitem(place, None)]):
                    begin, end = self._span(statement)[0], self._span(place)[1]
                    yield Change("context", begin, end, "if True")

    def _new(self, operator: str, node: ast.expr | ast.stmt, new: str) -> Change:
        return Change(operator, *self._span(node), new)

    def _text(self, node: ast.expr) -> str:
        begin, end = self._span(node)
        return self._source[begin:end]

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        return (
            self._at(node.lineno, node.col_offset),
            self._at(node.end_lineno or 1, node.end_col_offset or 0),
        )

    def _at(self, line: int, column: int) -> int:
        """Return the offset of a place, of which the tree counts UTF-8's bytes."""
        before = self._lines[line - 1].encode()[:column]
        return self._starts[line - 1] + len(before.decode())
