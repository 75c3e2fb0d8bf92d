"""The body of a Triton kernel, taken apart and put together anew from what is known.

A learner's text is never compiled as Python. For each piece that the language has, a
piece of ours is made: names, numbers, branches, loops and calls of our own functions,
whose names have a point before them, which no text can write. There is no attribute,
no operator and no import in what is made: each of these is a call, which looks at what
it is given (`engines/interpreter/triton/operations.py`). What is not known is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from typing import NoReturn

from warpbook_labs.errors import BadSource, NotHere
from warpbook_labs.lab.triton import language

_OWN_NAMES = ("tl", "triton", "range", *sorted(language.BUILTINS))
_BINARY = "Add Sub Mult Div FloorDiv Mod Pow LShift RShift BitAnd BitOr BitXor".split()
_UNARY = "USub UAdd Not Invert".split()
_COMPARED = "Eq NotEq Lt LtE Gt GtE Is IsNot".split()
_KEYWORDS = "Await Break Continue Global Lambda Match Nonlocal Raise With".split()
#: what people write who know Python; the rest is told in general
_WORDS: dict[str, str] = {
    "Import": "Imports stand at the top of the file",
    "ImportFrom": "Imports stand at the top of the file",
    "FunctionDef": "A function inside another is no Triton",
    "ClassDef": "A class is no Triton",
    "Starred": "`*` before a name is no Triton",
    "Dict": "A dictionary is no Triton",
    "Set": "A set is no Triton",
    **dict.fromkeys(("AsyncFunctionDef", "AsyncWith"), "`async` is no Triton"),
    **dict.fromkeys(("Try", "TryStar"), "`try` is no Triton"),
    **dict.fromkeys(("Yield", "YieldFrom"), "`yield` is no Triton"),
    **dict.fromkeys(
        ("SetComp", "DictComp", "GeneratorExp"), "A comprehension is no Triton"
    ),
    **{name: f"`{name.lower()}` is no Triton" for name in _KEYWORDS},
    "Delete": "`del` is no Triton",
    "Assign": "one `=` gives a value: Triton has no `a = b = value`",
}


#: what Triton's compiler takes, of numbers that it knows
_ONLY_COMPILED = {"JoinedStr": "an f-string", "ListComp": "a list's comprehension"}


class BadTriton(BadSource):
    """The file is no Triton that could be checked; the message names the line."""


def refuse(node: ast.AST, why: str) -> NoReturn:
    """Raise BadTriton for a piece of a source."""
    raise BadTriton(f"{why}.", getattr(node, "lineno", 1))


def dotted(node: ast.AST) -> str:
    """Give a name of Triton's, such as "tl.math.exp"; "" for all else."""
    if isinstance(node, ast.Name):
        return node.id if node.id in ("tl", "triton") else ""
    if not isinstance(node, ast.Attribute):
        return ""
    owner = dotted(node.value)
    name = f"{owner}.{node.attr}" if owner else ""
    return "tl" if name == "triton.language" else name


def refuse_elsewhere(name: str, node: ast.AST) -> None:
    """Raise NotHere for a name of Triton's that needs a GPU."""
    for known, instead in language.ELSEWHERE.items():
        if name == known or name.startswith(f"{known}."):
            line = getattr(node, "lineno", 1)
            raise NotHere(
                f"`{name}` is not supported without a GPU, so it can't be checked "
                f"here: {instead}.",
                line,
            )


def refuse_own(name: str, node: ast.AST) -> None:
    """Raise BadTriton where a name of the language's would be a learner's own."""
    if name in _OWN_NAMES:
        refuse(node, f"`{name}` can't be the name of a value")
    if name.startswith("__"):
        refuse(node, f"`{name}`: names begin with a letter")


class Body:
    """Makes the body of one kernel; what is no Triton raises BadTriton or NotHere."""

    def __init__(
        self, function: ast.FunctionDef, names: set[str], plain: Collection[str]
    ) -> None:
        self._function = function
        self._names = names | {argument.arg for argument in function.args.args}
        self._plain = plain
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._names.add(node.id)
                refuse_own(node.id, node)
        self._temporaries = 0

    def made(self) -> list[ast.stmt]:
        """Give statements of ours, each with the line of what it stands for.

        Parts of them have none yet: `ast.fix_missing_locations` gives it, once for all.
        """
        return self._block(self._function.body)

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        made = []
        for statement in statements:
            ours = self._statement(statement)
            made.append(ast.copy_location(ours, statement))
        return made or [ast.Pass()]

    def _statement(self, node: ast.stmt) -> ast.stmt:
        match node:
            case ast.Pass():
                return ast.Pass()
            case ast.Expr(value=ast.Constant()):
                return ast.Pass()
            case ast.Expr(value=ast.Call() as call):
                return ast.Expr(self._value(call))
            case ast.Return(value=None):
                return ast.Return(None)
            case ast.Return(value=ast.expr() as value):
                return ast.Return(self._value(value))
            case ast.Assign(targets=[target]):
                value = self._call("assigned", self._value(node.value))
                return ast.Assign([self._target(target)], value)
            case ast.AnnAssign(target=ast.Name(), value=ast.expr() as value):
                annotation = dotted(node.annotation)
                if annotation not in language.ANNOTATIONS:
                    refuse(node, "only `tl.constexpr` may stand behind a name")
                kept = "constant" if annotation == "tl.constexpr" else "assigned"
                made = self._call(kept, self._value(value))
                return ast.Assign([self._target(node.target)], made)
            case ast.AugAssign(target=ast.Name() as target):
                read = self._value(ast.copy_location(ast.Name(target.id), target))
                total = self._operation(node.op, read, self._value(node.value))
                value = self._call("assigned", total)
                return ast.Assign([self._target(target)], value)
            case ast.If():
                test = self._call("truth", self._value(node.test))
                orelse = self._block(node.orelse) if node.orelse else []
                return ast.If(test, self._block(node.body), orelse)
            case ast.While(orelse=[]):
                test = self._call("truth", self._value(node.test))
                return ast.While(test, self._block(node.body), [])
            case ast.For(target=ast.Name() as target, orelse=[]):
                rounds = self._rounds(node.iter)
                return ast.For(self._target(target), rounds, self._block(node.body), [])
            case ast.Assert():
                words = [node.msg] if node.msg else [ast.Constant("assert")]
                given = [self._value(part) for part in (node.test, *words)]
                return ast.Expr(self._call("triton", _text("tl.device_assert"), *given))
        self._unknown(node)

    def _target(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Name):
            return ast.Name(node.id, ast.Store())
        if isinstance(node, ast.Tuple):
            return ast.Tuple([self._target(part) for part in node.elts], ast.Store())
        if isinstance(node, ast.Attribute):
            refuse(node, f"`{_shown(node)}` is not for kernels")
        refuse(node, "a value is given to names only")

    def _rounds(self, node: ast.expr) -> ast.expr:
        name = ""
        if isinstance(node, ast.Call):
            is_name = isinstance(node.func, ast.Name)
            name = dotted(node.func) or (ast.unparse(node.func) if is_name else "")
        if not isinstance(node, ast.Call) or name not in language.RANGES:
            known = ", ".join(f"`{word}`" for word in sorted(language.RANGES))
            refuse(node, f"a loop goes over one of {known}")
        return self._call("rounds", _text(name), *self._given(node, is_ours=False))

    def _value(self, node: ast.expr) -> ast.expr:
        ours = self._expression(node)
        return ast.copy_location(ours, node)

    def _expression(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None):
                return ast.Constant(node.value)
            case ast.Name():
                return self._name(node)
            case ast.Tuple():
                return ast.Tuple([self._value(part) for part in node.elts], ast.Load())
            case ast.List():
                return ast.List([self._value(part) for part in node.elts], ast.Load())
            case ast.BinOp():
                left, right = self._value(node.left), self._value(node.right)
                return self._operation(node.op, left, right)
            case ast.UnaryOp():
                name = self._known(node.op, _UNARY, node)
                return self._call("unary", _text(name), self._value(node.operand))
            case ast.BoolOp():
                return self._joined(node)
            case ast.Compare():
                return self._compared(node)
            case ast.IfExp():
                kept, test = self._kept(self._value(node.test))
                values = (self._value(part) for part in (node.body, node.orelse))
                chosen = (self._call("chosen", test, value) for value in values)
                return ast.IfExp(self._call("truth", kept), *chosen)
            case ast.NamedExpr(target=target):
                value = self._call("assigned", self._value(node.value))
                return ast.NamedExpr(ast.Name(target.id, ast.Store()), value)
            case ast.Subscript():
                value, at = self._value(node.value), self._value(node.slice)
                return self._call("item", value, at)
            case ast.Slice():
                parts = (node.lower, node.upper, node.step)
                given = [self._value(part or ast.Constant(None)) for part in parts]
                return self._call("slice", *given)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Call():
                return self._called(node)
        self._unknown(node)

    def _name(self, node: ast.Name) -> ast.expr:
        if node.id.startswith("__"):
            refuse(node, f"`{node.id}`: names begin with a letter")
        if node.id in _OWN_NAMES:
            refuse(node, f"`{node.id}` is no value by itself")
        if node.id not in self._names:
            if node.id in self._plain:
                why = "a kernel reads no plain number from outside"
                refuse(node, f"{why}: write {node.id} = tl.constexpr(...)")
            if node.id == "abs":
                refuse(node, "there is no `abs` in a kernel: write tl.abs(...)")
            refuse(node, f"there is no `{node.id}` in a kernel")
        return ast.Name(node.id, ast.Load())

    def _operation(
        self, operator: ast.operator, left: ast.expr, right: ast.expr
    ) -> ast.expr:
        name = self._known(operator, _BINARY, left)
        return self._call("binary", _text(name), left, right)

    def _joined(self, node: ast.BoolOp) -> ast.expr:
        """Have `and` and `or` leave the rest out only where the first is a constant."""
        which = _text(type(node.op).__name__)
        first, *others = [self._value(part) for part in node.values]
        for other in others:
            kept, value = self._kept(first)
            goes_on = self._call("goes_on", which, kept)
            first = ast.IfExp(goes_on, self._call("joined", which, value, other), value)
        return first

    def _kept(self, value: ast.expr) -> tuple[ast.expr, ast.expr]:
        """Give an expression that names a value, and one that has it again."""
        self._temporaries += 1
        name = f".{self._temporaries}"
        kept = ast.NamedExpr(ast.Name(name, ast.Store()), value)
        return kept, ast.Name(name, ast.Load())

    def _compared(self, node: ast.Compare) -> ast.expr:
        parts: list[ast.expr] = [self._value(node.left)]
        for operator, right in zip(node.ops, node.comparators, strict=True):
            name = self._known(operator, _COMPARED, node)
            is_none = isinstance(right, ast.Constant) and right.value is None
            if name in ("Is", "IsNot") and not is_none:
                refuse(node, "`is` asks for None only: compare numbers by ==")
            parts += [_text(name), self._value(right)]
        return self._call("compared", *parts)

    def _attribute(self, node: ast.Attribute) -> ast.expr:
        name = dotted(node)
        self._refuse_hidden(node, name)
        if name in language.VALUES:
            return self._call("value", _text(name))
        if name or node.attr not in language.ATTRIBUTES:
            refuse(node, f"`{_shown(node)}` is not for kernels")
        return self._call("attribute", self._value(node.value), _text(node.attr))

    def _called(self, node: ast.Call) -> ast.expr:
        function = node.func
        if isinstance(function, ast.Name):
            if function.id in language.BUILTINS:
                given = self._given(node, is_ours=False)
                return self._call("builtin", _text(function.id), *given)
            return self._call("called", self._name(function), *self._given(node, True))
        if not isinstance(function, ast.Attribute):
            refuse(node, "only functions that have a name can be called")
        name = dotted(function)
        self._refuse_hidden(function, name)
        if name in language.CALLED:
            return self._call("triton", _text(name), *self._given(node, is_ours=False))
        if name or function.attr not in language.METHODS:
            refuse(function, f"`{_shown(function)}` is not for kernels")
        given = self._given(node, is_ours=False)
        owner = self._value(function.value)
        return self._call("method", owner, _text(function.attr), *given)

    def _refuse_hidden(self, node: ast.Attribute, name: str) -> None:
        if node.attr.startswith("_"):
            words = "what begins with _ is no part of the language"
            refuse(node, f"`{_shown(node)}`: {words}")
        refuse_elsewhere(name, node)

    def _given(self, node: ast.Call, is_ours: bool) -> list[ast.expr | ast.keyword]:
        """Give what is handed over; what begins with _ is Triton's own business."""
        for keyword in node.keywords:
            if keyword.arg is None:
                refuse(node, "`**` before a name is no Triton")
            if keyword.arg.startswith("__" if is_ours else "_"):
                refuse(node, f"there is no `{keyword.arg}` to be given")
        named = [ast.keyword(one.arg, self._value(one.value)) for one in node.keywords]
        return [*(self._value(part) for part in node.args), *named]

    def _call(self, name: str, *given: ast.expr | ast.keyword) -> ast.expr:
        return ast.Call(
            ast.Name(f".{name}", ast.Load()),
            [part for part in given if isinstance(part, ast.expr)],
            [part for part in given if isinstance(part, ast.keyword)],
        )

    def _known(self, operator: ast.AST, names: Sequence[str], node: ast.AST) -> str:
        name = type(operator).__name__
        if name not in names:
            refuse(node, "this operator is no Triton")
        return name

    def _unknown(self, node: ast.AST) -> NoReturn:
        kind = type(node).__name__
        if kind in _ONLY_COMPILED:
            words = f"{_ONLY_COMPILED[kind]} is not supported without a GPU."
            raise NotHere(words, getattr(node, "lineno", 1))
        refuse(node, _WORDS.get(kind, "this is no Triton"))


def _text(words: str) -> ast.Constant:
    return ast.Constant(words)


def _shown(node: ast.AST) -> str:
    return ast.unparse(node)[:60]
