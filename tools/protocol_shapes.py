"""Write frontend/src/shapes/*.ts: for each message and answer, a check of its shape.

They come of the same JSON Schema as protocol.ts, and use frontend/src/shapes/checks.ts:

- a field that has a default in Python may be left out by an older server: the page
  fills it in;
- an enumeration is any text, so that a newer server's word is no broken message; what a
  lab's card is drawn by is one of the words that are known;
- lists and maps are bounded by protocol_bounds.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
from protocol_bounds import BOUNDS, MOST_ITEMS, MOST_KEYS

from warpbook import alert_rules_protocol, lab_protocol, protocol
from warpbook_profiler.model import progress

Schema = dict[str, Any]

HEADER = """\
// Generated from extension/warpbook/*protocol.py. Do not edit.

import type { Check, Shape } from './checks';
import * as check from './checks';
import type * as types from './protocol';
"""

STREAM_MESSAGES = get_args(protocol.ServerMessage)
STREAM = (
    *STREAM_MESSAGES,
    protocol.SpanStatistics,
    protocol.RecordList,
    protocol.Detail,
    protocol.Comparison,
    progress.TraceProgress,
    protocol.ChecklistView,
)
TIMELINE = (
    protocol.TimelineWindow,
    protocol.TimelineStatistics,
    protocol.TimelineMatches,
    protocol.TimelineDetails,
)
LABS = (
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
ALERT_RULES = (alert_rules_protocol.AlertRules,)
#: the files, each loaded by those parts of the page that need it
FILES = {
    "stream": STREAM,
    "timeline": TIMELINE,
    "labs": LABS,
    "alert_rules": ALERT_RULES,
}
#: structs whose words the page looks up
_KNOWN_WORDS = re.compile(r"^(Card.*|.*Cell)$")


def generate() -> dict[str, str]:
    """Give the text of each file, by its name without the suffix.

    Raises:
        KeyError: a bound is of a field that no struct has any more.
    """
    bounded: set[str] = set()
    texts = {name: _file(name, roots, bounded) for name, roots in FILES.items()}
    if stale := BOUNDS.keys() - bounded:
        raise KeyError(f"no list is named {', '.join(sorted(stale))}")
    return texts


def _file(file: str, roots: tuple[type, ...], bounded: set[str]) -> str:
    _, components = msgspec.json.schema_components(roots, ref_template="{name}")
    shapes = [_shape(name, components[name], bounded) for name in _in_order(components)]
    if file == "stream":
        shapes.append(_messages())
    head = HEADER if file == "stream" else HEADER.replace("Check, ", "")
    return "\n".join([head, *shapes])


def _in_order(components: dict[str, Schema]) -> list[str]:
    """Give each name after those that its struct is made of."""
    order: dict[str, None] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        for part in sorted(set(_references(components[name]))):
            if part not in order and part not in (*above, name):
                visit(part, (*above, name))
        order.setdefault(name)

    for name in sorted(components):
        visit(name, ())
    return list(order)


def _references(schema: Any) -> Iterator[str]:
    """Give the names of the structs that a schema has parts of."""
    if isinstance(schema, list):
        for of in schema:
            yield from _references(of)
    elif isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"]
        for key in ("anyOf", "items", "prefixItems", "additionalProperties"):
            yield from _references(schema.get(key))
        for of in schema.get("properties", {}).values():
            yield from _references(of)


def _shape(name: str, schema: Schema, bounded: set[str]) -> str:
    """Declare the check of one struct; add to `bounded` what bounds were looked up."""
    checks = _Checks(name, bounded)
    fields = {key: checks.of(of, key) for key, of in schema["properties"].items()}
    defaults = {
        key: json.dumps(of["default"])
        for key, of in schema["properties"].items()
        if "default" in of
    }
    text = f"export const is{name}: Shape<types.{name}> = check.record<types.{name}>("
    text += _object(fields)
    if defaults:
        text += ", " + _object(defaults)
    return text + ");\n"


def _object(fields: dict[str, str]) -> str:
    rows = "".join(f"  {key}: {value},\n" for key, value in fields.items())
    return f"{{\n{rows}}}"


def _messages() -> str:
    """Map the type of each message to its check."""
    names = {of.__struct_config__.tag: of.__name__ for of in STREAM_MESSAGES}
    head = "export const MESSAGES: Record<types.ServerMessage['type'], Check> = "
    return head + _object({tag: f"is{name}" for tag, name in names.items()}) + ";\n"


class _Checks:
    """Words the checks of one struct's fields."""

    def __init__(self, name: str, bounded: set[str]) -> None:
        self._name = name
        self._bounded = bounded
        self._has_known_words = bool(_KNOWN_WORDS.match(name))

    def of(self, schema: Schema, field: str) -> str:
        """Give the check of one schema; `field` is what bounds are looked up by."""
        if "$ref" in schema:
            # itself is not there yet while its own check is made
            name = f"is{schema['$ref']}"
            return f"value => {name}(value)" if schema["$ref"] == self._name else name
        if "discriminator" in schema:
            return self._tagged(schema["discriminator"]["mapping"])
        if "anyOf" in schema:
            return self._any_of(schema["anyOf"], field)
        if "enum" in schema:
            is_tag = field == "type"
            words = ", ".join(f"'{word}'" for word in schema["enum"])
            known = is_tag or self._has_known_words
            return f"check.oneOf({words})" if known else "check.text"
        match schema["type"]:
            case "array" if "prefixItems" in schema:
                items = (self.of(item, field) for item in schema["prefixItems"])
                return f"check.tuple({', '.join(items)})"
            case "array":
                self._bounded.add(f"{self._name}.{field}")
                most = BOUNDS.get(f"{self._name}.{field}", MOST_ITEMS)
                return f"check.list({self.of(schema['items'], field + '[]')}, {most})"
            case "object":
                return self._map(schema["additionalProperties"], field)
            case "string" if "pattern" in schema:
                return f"check.matching(/{schema['pattern']}/)"
        return _PRIMITIVES[schema["type"]]

    def _any_of(self, options: list[Schema], field: str) -> str:
        checks = dict.fromkeys(
            self.of(option, field) for option in options if option.get("type") != "null"
        )
        if "check.number" in checks:
            # a whole number is one
            checks.pop("check.whole", None)
        text = next(iter(checks)) if len(checks) == 1 else ", ".join(checks)
        if len(checks) > 1:
            text = f"check.either({text})"
        is_optional = {"type": "null"} in options
        return f"check.optional({text})" if is_optional else text

    def _map(self, values: Schema, field: str) -> str:
        # a map of words, such as facts or names, is as long as a list
        words = {option.get("type") for option in values.get("anyOf", [values])}
        most = MOST_ITEMS if words <= _PRIMITIVES.keys() else MOST_KEYS
        return f"check.map({self.of(values, field + '[]')}, {most})"

    @staticmethod
    def _tagged(mapping: dict[str, str]) -> str:
        rows = ", ".join(f"{tag}: is{name}" for tag, name in mapping.items())
        return f"check.tagged({{ {rows} }})"


_PRIMITIVES = {
    "boolean": "check.flag",
    "integer": "check.whole",
    "number": "check.number",
    "string": "check.text",
}
