"""Write what the page knows of protocol.py and lab_protocol.py of warpbook.

That is frontend/src/shapes/protocol.ts, the types, frontend/src/shapes/, their checks
(see protocol_shapes.py), and frontend/src/labs/languages.ts, the names of languages.
`python tools/protocol_types.py` writes; with `--check` it only compares, and exits with
1 when a file is not what the Python sources say.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any, get_args

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("extension", "labs", "monitors")]

import protocol_shapes

from warpbook import alert_rules_protocol, lab_protocol, protocol
from warpbook_labs.cards import model
from warpbook_labs.lab.languages.language import LANGUAGE_NAMES
from warpbook_monitors import frames, verdict_kinds
from warpbook_profiler.checklist import answers
from warpbook_profiler.model import progress

SOURCES = ROOT / "frontend" / "src"
HEADER = "// Generated from extension/warpbook/*protocol.py. Do not edit."
WIDTH = 80

#: A schema spells a Literal out at each use; these get their Python name back.
LITERALS = {
    frozenset(get_args(getattr(frames, name))): name
    for name in ("State", "AbsenceReason", "Unit", "DeviceKind", "Severity")
} | {
    frozenset(get_args(model.CardStatus)): "CardStatus",
    frozenset(get_args(verdict_kinds.Kind)): "VerdictKind",
    frozenset(get_args(answers.Answer)): "ChecklistAnswer",
}
#: The same of unions of structs, by the names of their members.
PARTS = {
    frozenset(option.__name__ for option in get_args(getattr(model, name))): name
    for name in ("Cell", "Part")
}
UNIONS = {
    "ServerMessage": protocol.ServerMessage,
    "ClientMessage": protocol.ClientMessage,
}
ANSWERS = (
    protocol.Capabilities,
    protocol.StateNow,
    protocol.SpanStatistics,
    protocol.RecordList,
    protocol.CellBand,
    protocol.Detail,
    protocol.TimelineWindow,
    protocol.TimelineStatistics,
    protocol.TimelineMatches,
    protocol.TimelineDetails,
    protocol.Comparison,
    protocol.ChecklistView,
    progress.TraceProgress,
    alert_rules_protocol.AlertRules,
    alert_rules_protocol.AlertRuleChange,
    lab_protocol.CourseList,
    lab_protocol.LabList,
    lab_protocol.LabOpened,
    lab_protocol.LabHints,
    lab_protocol.LabSolution,
    lab_protocol.LabCards,
    lab_protocol.QuizSheet,
    lab_protocol.QuizMark,
    lab_protocol.QuizBegin,
)

Schema = dict[str, Any]


def type_script(schema: Schema) -> str:
    """Give the TypeScript type of one JSON Schema, as msgspec writes them."""
    if "$ref" in schema:
        return str(schema["$ref"])
    if "anyOf" in schema:
        # "number" and "integer" are one type here, so a union may say it twice
        options = dict.fromkeys(type_script(s) for s in schema["anyOf"])
        return PARTS.get(frozenset(options)) or " | ".join(options)
    if "enum" in schema:
        alias = LITERALS.get(frozenset(schema["enum"]))
        return alias or " | ".join(f"'{value}'" for value in schema["enum"])
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            return f"[{', '.join(map(type_script, schema['prefixItems']))}]"
        case "array":
            inner = type_script(schema["items"])
            return f"({inner})[]" if "|" in inner else f"{inner}[]"
        case "object":
            return f"Record<string, {type_script(schema['additionalProperties'])}>"
        case "integer" | "number":
            return "number"
        case "string" | "boolean" | "null" as name:
            return str(name)
    raise NotImplementedError(f"no TypeScript for {schema}")


def declaration(head: str, type_: str, indent: str = "") -> str:
    """Lay one declaration out as prettier does."""
    line = f"{indent}{head} {type_};"
    if len(line) <= WIDTH or " | " not in type_:
        return line
    second = f"{indent}  {type_};"
    if len(second) <= WIDTH:
        return f"{indent}{head}\n{second}"
    options = "".join(f"\n{indent}  | {option}" for option in type_.split(" | "))
    return f"{indent}{head}{options};"


def doc(text: str, indent: str = "") -> str:
    """Make a documentation comment of a docstring."""
    lines = textwrap.wrap(" ".join(text.split()), WIDTH - len(indent) - 3)
    if len(lines) == 1 and len(lines[0]) + len(indent) + 7 <= WIDTH:
        return f"{indent}/** {lines[0]} */\n"
    body = "".join(f"{indent} * {line}\n" for line in lines)
    return f"{indent}/**\n{body}{indent} */\n"


def interface(name: str, schema: Schema, from_client: bool) -> str:
    """Declare one Struct. A server sends every field, a client may leave some out."""
    required = set(schema.get("required", ()))
    fields = [
        declaration(
            f"readonly {field}{'?' if from_client and field not in required else ''}:",
            type_script(of),
            "  ",
        )
        for field, of in schema["properties"].items()
    ]
    head = doc(schema.get("description", name))
    return f"{head}export interface {name} {{\n" + "\n".join(fields) + "\n}\n"


def constants() -> str:
    """Declare the version and the close codes."""
    codes = {k: v for k, v in vars(protocol.CloseCode).items() if k.isupper()}
    rows = ",\n".join(f"  {name}: {code}" for name, code in codes.items())
    return (
        f"export const PROTOCOL_VERSION = {protocol.PROTOCOL_VERSION};\n\n"
        + doc(protocol.CloseCode.__doc__ or "")
        + f"export const CloseCode = {{\n{rows}\n}} as const;\n"
    )


def generate() -> str:
    """Give the whole file."""
    roots = [*UNIONS.values(), *ANSWERS]
    _, components = msgspec.json.schema_components(roots, ref_template="{name}")
    from_client = {t.__name__ for t in get_args(protocol.ClientMessage)}
    parts = [HEADER + "\n", constants()]
    for values, name in LITERALS.items():
        union = " | ".join(f"'{v}'" for v in sorted(values))
        parts.append(declaration(f"export type {name} =", union) + "\n")
    for members, name in PARTS.items():
        parts.append(declaration(f"export type {name} =", " | ".join(sorted(members))))
        parts[-1] += "\n"
    parts += [
        interface(name, schema, name in from_client)
        for name, schema in sorted(components.items())
    ]
    for name, union in UNIONS.items():
        members = " | ".join(t.__name__ for t in get_args(union))
        parts.append(declaration(f"export type {name} =", members) + "\n")
    return "\n".join(parts)


def languages() -> str:
    """Give the file with the names of labs' languages, marked for translation."""
    rows = ",\n".join(
        f"  {language}: mark('{name}')" for language, name in LANGUAGE_NAMES.items()
    )
    return (
        "// Generated from lab/languages/language.py of warpbook_labs. Do not edit.\n\n"
        "import { mark } from '../core/translation';\n\n"
        + doc("What people call the languages of labs, before translation.")
        + f"export const LANGUAGES: Record<string, string> = {{\n{rows}\n}};\n"
    )


def files() -> dict[Path, str]:
    """Give the text of each file that is generated."""
    shapes = protocol_shapes.generate()
    return {
        SOURCES / "shapes" / "protocol.ts": generate(),
        SOURCES / "labs" / "languages.ts": languages(),
    } | {SOURCES / "shapes" / f"{name}.ts": text for name, text in shapes.items()}


def main() -> int:
    """Write the files, or compare them."""
    is_check = "--check" in sys.argv[1:]
    stale = []
    for path, text in files().items():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        if is_check:
            stale.append(str(path.relative_to(ROOT)))
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if not stale:
        return 0
    print(
        f"{', '.join(stale)}: not what the Python sources say.\n"
        "Run `make protocol` and commit the result."
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
