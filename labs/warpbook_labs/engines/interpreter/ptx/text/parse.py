"""Reads PTX, as NVRTC writes it, into its parts.

The grammar is that of NVIDIA's "Parallel Thread Execution ISA"; what compilers do not
write is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpbook_labs.engines.interpreter.ptx.text.errors import (
    NotPtx,
    TooLarge,
    Unsupported,
)
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Address,
    Call,
    Function,
    Immediate,
    Instruction,
    Label,
    Module,
    Negated,
    Operand,
    Prototype,
    Register,
    Registers,
    Scope,
    Statement,
    Symbol,
    Targets,
    Variable,
    Vector,
)
from warpbook_labs.engines.interpreter.ptx.text.values import (
    initial,
    number,
    width_bytes,
)

#: more than any exercise needs
MAX_TEXT_BYTES = 8_000_000
#: the learner's file is the first that the compiler reads
_OWN_FILE = "1"

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
#: file, line and column; and of what is inlined, those of the call
_LOC = re.compile(
    r"^[ \t]*\.loc\s+(\d+)\s+(\d+)\s+(\d+)"
    r"(?:[^\n]*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?[^\n]*$",
    re.M,
)
_FILE = re.compile(r"^[ \t]*\.file\s[^\n]*$", re.M)
_LABEL = re.compile(r"([\w$%.]+)\s*:(?!:)")
_NAME = r"[\w$%.]+"
_VARIABLE = re.compile(
    r"(?P<extern>\.extern\s+)?(?:\.(?:visible|weak|common)\s+)*"
    r"\.(?P<space>reg|param|local|shared|global|const)\s+"
    r"(?:\.align\s+(?P<align>\d+)\s+)?(?:\.v(?P<vector>[24])\s+)?"
    r"(?:\.ptr\s+)?\.(?P<type>\w+)\s+(?:\.ptr\s+[^%\w]*)?(?P<rest>.+)",
    re.S,
)
_DECLARED = re.compile(
    rf"(?P<name>{_NAME})(?:<(?P<count>\d+)>)?\s*(?P<sizes>(?:\[\s*\d*\s*\]\s*)*)"
    r"(?:=\s*(?P<values>.*))?$",
    re.S,
)
_FUNCTION = re.compile(
    r"(?:\.(?:visible|weak|extern|noreturn)\s+)*\.(?P<kind>entry|func)\b(?P<rest>.*)$",
    re.S,
)
_HEAD = re.compile(
    rf"\s*(?:\((?P<results>[^()]*)\))?\s*(?P<name>{_NAME})\s*"
    r"(?:\((?P<parameters>[^()]*)\))?",
    re.S,
)
_LIMIT = re.compile(r"\.(maxntid|reqnctapercluster)\s+([\d,\s]+)")
_CALL = re.compile(
    rf"call(?:\.uni)?\s+(?:\((?P<results>[^()]*)\)\s*,\s*)?(?P<name>{_NAME})"
    r"(?:\s*,\s*\((?P<arguments>[^()]*)\))?(?P<rest>.*)$",
    re.S,
)
_PROTOTYPE = re.compile(
    rf"(?P<name>{_NAME})\s*:\s*\.callprototype\s*(?:\((?P<results>[^()]*)\))?\s*_\s*"
    r"(?:\((?P<parameters>[^()]*)\))?",
    re.S,
)
# `asm` may declare registers that begin with no "%"
_GUARD = re.compile(r"@(!?)\s*(%?[A-Za-z_$][\w$]*)\s*")
_OPCODE = re.compile(r"([a-z]\w*)((?:(?:::|\.)\w+)*)\s*")
_OFFSET = re.compile(r"^(.*?)\s*([+-])\s*(-?(?:0[xX])?[0-9a-fA-F]+)$", re.S)


def parse(text: str) -> Module:
    """Read a whole PTX text.

    Raises:
        NotPtx: it can't be read.
    """
    if len(text) > MAX_TEXT_BYTES:
        raise TooLarge(
            f"The program has {len(text):,} characters of PTX; this interpreter reads "
            f"{MAX_TEXT_BYTES:,}."
        )
    text = _COMMENT.sub(" ", text.rstrip("\0"))
    text = _LOC.sub(r".loc \1 \2 \3 \4 \5 \6;", _FILE.sub("", text))
    module = Module()
    for statement, body in _split(text):
        _add(module, statement, body)
    return module


def _split(text: str) -> Iterator[tuple[str, str | None]]:
    """Give each statement, or the words before a body in braces with the body."""
    at, begin = 0, 0
    while at < len(text):
        char = text[at]
        if char == ";":
            if words := text[begin:at].strip():
                yield words, None
            begin = at + 1
        elif char == "{":
            words = text[begin:at].strip()
            end = _closing(text, at)
            # braces within a statement are a vector, or the values of a variable
            if not words or _FUNCTION.match(words):
                yield words, text[at + 1 : end]
                begin = end + 1
            at = end
        elif char == '"':
            at = text.find('"', at + 1)
            if at < 0:
                raise NotPtx("A text in quotes does not end.")
        elif char == "\n" and _is_directive(text[begin:at]):
            yield text[begin:at].strip(), None
            begin = at + 1
        elif char == ":":
            label = _LABEL.match(text[begin:].lstrip())
            start = text.find(label[1], begin) if label else -1
            if label is not None and start + len(label[0]) - 1 == at:
                if not text[at + 1 :].lstrip().startswith((".branchtargets", ".call")):
                    yield f"{label[1]}:", None
                    begin = at + 1
        at += 1
    if words := text[begin:].strip():
        yield words, None


def _is_directive(line: str) -> bool:
    """Tell a directive that ends with its line."""
    return line.lstrip().startswith((".version", ".target", ".address_size"))


def _closing(text: str, at: int) -> int:
    depth = 0
    for place in re.finditer(r"[{}]", text[at:]):
        depth += 1 if place[0] == "{" else -1
        if not depth:
            return at + place.start()
    raise NotPtx("A brace is never closed.")


def _add(module: Module, statement: str, body: str | None) -> None:
    if statement.startswith((".version", ".address_size", ".section", ".pragma")):
        return
    if statement.startswith(".target"):
        module.target = statement.removeprefix(".target").split(",")[0].strip()
        return
    if statement.startswith((".loc ", ".alias")):
        return
    function = _FUNCTION.match(statement)
    if function is not None:
        parsed = _function(function, body)
        known = module.functions.get(parsed.name)
        if known is None or known.body is None:
            module.functions[parsed.name] = parsed
        return
    for declared in _declarations(statement):
        if isinstance(declared, Variable):
            module.variables[declared.name] = declared


def _function(match: re.Match[str], body: str | None) -> Function:
    head = _HEAD.match(match["rest"])
    if head is None:
        raise NotPtx(f"A function without a name: {match[0][:80]!r}.")
    return Function(
        head["name"],
        match["kind"] == "entry",
        _parameters(head["results"]),
        _parameters(head["parameters"]),
        None if body is None else _Body().read(body),
        {
            name: tuple(map(int, re.findall(r"\d+", sides)))
            for name, sides in _LIMIT.findall(match["rest"], head.end())
        },
    )


def _parameters(text: str | None) -> tuple[Variable, ...]:
    variables: list[Variable] = []
    for word in (text or "").split(","):
        if word.strip():
            variables += [
                v for v in _declarations(word.strip()) if isinstance(v, Variable)
            ]
    return tuple(variables)


def _declarations(statement: str) -> list[Variable | Registers]:
    declared = _VARIABLE.match(statement)
    if declared is None:
        raise NotPtx(f"This is no statement of PTX: {statement[:80]!r}.")
    type_ = declared["type"]
    declarations: list[Variable | Registers] = []
    for part in _commas(declared["rest"]):
        name = _DECLARED.match(part.strip())
        if name is None:
            raise NotPtx(f"This is no name to declare: {part[:80]!r}.")
        if declared["space"] == "reg":
            count = name["count"]
            prefix = name["name"]
            declarations.append(
                Registers(prefix, type_, None if count is None else int(count))
            )
            continue
        element = width_bytes(type_) * int(declared["vector"] or 1)
        sizes = [
            int(size or 0) for size in re.findall(r"\[\s*(\d*)\s*\]", name["sizes"])
        ]
        size = element
        for side in sizes:
            size *= side
        held, addresses = initial(name["values"] or "", type_)
        declarations.append(
            Variable(
                name["name"],
                declared["space"],
                type_,
                max(size, len(held)),
                int(declared["align"] or element),
                held,
                bool(declared["extern"]),
                addresses,
            )
        )
    return declarations


class _Body:
    """Reads a function's statements; it knows which source line they are of."""

    def __init__(self) -> None:
        self._line: int | None = None
        self._called_on: tuple[int, ...] = ()
        #: by file, line and column: those of the call in which it is inlined
        self._calls: dict[tuple[str, ...], set[tuple[str, ...]]] = {}

    def read(self, text: str) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        for statement, body in _split(text):
            if body is not None:
                statements.append(Scope(self.read(body)))
            else:
                statements += self._statements(statement)
        return tuple(statements)

    def _statements(self, text: str) -> list[Statement]:
        if text.startswith(".loc "):
            self._locate(text.split()[1:])
            return []
        if text.startswith(".pragma"):
            return []
        if text.endswith(":"):
            return [Label(text[:-1])]
        targets = re.match(rf"({_NAME})\s*:\s*\.branchtargets\s+(.*)$", text, re.S)
        if targets is not None:
            return [Targets(targets[1], tuple(_commas(targets[2])))]
        prototype = _PROTOTYPE.match(text)
        if prototype is not None:
            results, parameters = prototype["results"], prototype["parameters"]
            return [
                Prototype(
                    prototype["name"], _parameters(results), _parameters(parameters)
                )
            ]
        if text.startswith("."):
            return list(_declarations(text))
        if text.startswith("call"):
            return [self._call(text)]
        return [self._instruction(text)]

    def _locate(self, numbers: list[str]) -> None:
        """Note the line of what follows, and the lines of the calls that lead there."""
        here, call = tuple(numbers[:3]), tuple(numbers[3:])
        if call:
            self._calls.setdefault(here, set()).add(call)
        if here[0] != _OWN_FILE or here[1] == "0":
            return
        self._line, lines = int(here[1]), dict[int, None]()
        while call:
            if call[0] == _OWN_FILE:
                lines[int(call[1])] = None
            # further out only where it is certain, beside calls of itself
            outer = {
                call_site
                for call_site in self._calls.get(call, ())
                if int(call_site[1]) not in lines
            }
            call = outer.pop() if len(outer) == 1 else ()
        self._called_on = tuple(lines)

    def _call(self, text: str) -> Call:
        match = _CALL.match(text)
        if match is None:
            raise Unsupported("a call of this form", self._line)
        return Call(
            match["name"],
            tuple(_commas(match["results"] or "")),
            tuple(_commas(match["arguments"] or "")),
            self._line,
            match["rest"].strip(" ,\t\n"),
        )

    def _instruction(self, text: str) -> Instruction:
        guard: Register | Negated | None = None
        guarded = _GUARD.match(text)
        if guarded is not None:
            guard = Register(guarded[2])
            if guarded[1]:
                guard = Negated(guard)
            text = text[guarded.end() :]
        opcode = _OPCODE.match(text)
        if opcode is None:
            raise NotPtx(f"This is no instruction of PTX: {text[:80]!r}.")
        operands = tuple(map(_operand, _commas(text[opcode.end() :])))
        modifiers = tuple(re.findall(r"\w+(?:::\w+)*", opcode[2]))
        return Instruction(
            opcode[1], modifiers, operands, guard, self._line, self._called_on
        )


def _commas(text: str) -> list[str]:
    """Split at the commas that are in no bracket."""
    parts: list[str] = []
    depth, begin = 0, 0
    for at, char in enumerate(text):
        if char in "[{(":
            depth += 1
        elif char in "]})":
            depth -= 1
        elif char == "," and not depth:
            parts.append(text[begin:at].strip())
            begin = at + 1
    parts.append(text[begin:].strip())
    return [part for part in parts if part]


def _operand(text: str) -> Operand:
    if text.startswith("["):
        base, offset = _base(text.strip("[] \t\n"))
        simple = _operand(base)
        if isinstance(simple, Symbol):
            return Address(Symbol(simple.name), offset + simple.offset)
        if not isinstance(simple, Register | Immediate):
            raise NotPtx(f"This is no address: {text[:80]!r}.")
        return Address(simple, offset)
    if text.startswith("{"):
        return Vector(tuple(map(_operand, _commas(text[1:-1]))))
    if "|" in text:
        return Vector(tuple(_operand(part.strip()) for part in text.split("|")))
    if text.startswith("!"):
        return Negated(Register(text[1:].strip()))
    if text.startswith("%") or text == "_":
        return Register(text)
    value = number(text)
    if value is not None:
        return value
    if text in ("WARP_SZ",):
        return Immediate(32)
    base, offset = _base(text)
    if not re.fullmatch(_NAME, base):
        raise NotPtx(f"This is no operand: {text[:80]!r}.")
    return Symbol(base, offset)


def _base(text: str) -> tuple[str, int]:
    match = _OFFSET.match(text)
    if match is None or not match[1].strip():
        return text, 0
    offset = int(match[3], 0)
    return match[1].strip(), -offset if match[2] == "-" else offset
