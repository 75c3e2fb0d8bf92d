"""Write the tables of the docs that the code knows: `python tools/reference.py`.

A page has them between `<!-- generated: WHAT -->` and `<!-- end -->`; WHAT is a name of
TABLES and its arguments. With `--check` nothing is written, and the exit status is 1
where a page does not say what the code does.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("extension", "labs", "monitors")]

from traitlets import Enum

from warpbook.cli.main import make_parser
from warpbook.kernel.profile.gpuprof import CellProfiler
from warpbook.server.app import WarpbookApp
from warpbook_monitors import metrics
from warpbook_profiler.stalls.reasons import stall_reasons
from warpbook_profiler.techniques.registry import OWN, experiments, questions

BLOCK = re.compile(r"(<!-- generated: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
PACKAGES = (
    "monitors/warpbook_monitors",
    "monitors/warpbook_profiler",
    "labs/warpbook_labs",
    "extension/warpbook",
    "extension/warpbook_hub",
)
SCHEMA = ROOT / "frontend" / "schema" / "plugin.json"
COLOURS = ROOT / "frontend" / "style" / "colours.css"


def main() -> int:
    """Write each page anew, or say which is stale, and return the exit status."""
    check = sys.argv[1:] == ["--check"]
    stale = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        current = BLOCK.sub(_generated, text)
        if current != text:
            stale.append(page.relative_to(ROOT))
            if not check:
                page.write_text(current, encoding="utf-8")
    if check and stale:
        print(f"run python tools/reference.py: {', '.join(map(str, stale))}")
    return int(check and bool(stale))


def _generated(block: re.Match[str]) -> str:
    name, *arguments = block[2].split()
    lines = "\n".join(TABLES[name](*arguments))
    return f"{block[1]}\n{lines}\n\n{block[3]}"


def command(name: str) -> Iterator[str]:
    """Give what a command is for and its options, then its own commands."""
    parser = dict(_commands(make_parser()))[name]
    yield f"{parser.description}\n"
    inner, own_options = dict(_commands(parser)), list(_options(parser))
    if len(inner) > 1 and not own_options:
        calls = ((_call(own), own.description or "") for own in inner.values())
        yield from _table(("command", "what it does"), calls)
        yield ""
        yield from _table(("option", "of", "meaning"), _shared_options(inner))
        return
    yield from _table(("option", "meaning"), own_options)
    for own, own_parser in inner.items():
        yield f"\n### `warpbook {name} {own}`\n\n{own_parser.description}\n"
        yield from _table(("option", "meaning"), _options(own_parser))


def options(magic: str) -> Iterator[str]:
    """Give the options of a magic."""
    parser = getattr(CellProfiler, magic).parser
    return _table(("option", "meaning"), _options(parser))


def metric(table: str) -> Iterator[str]:
    """Give the metrics of one table of `warpbook_monitors.metrics`."""
    kinds = getattr(metrics, table).values()
    rows = ((f"`{kind.name}`", kind.unit, kind.meaning) for kind in kinds)
    return _table(("metric", "unit", "meaning"), rows)


def colours() -> Iterator[str]:
    """Give the tokens of the page, with what each means."""
    light, dark = COLOURS.read_text("utf-8").split("\n}\n", 2)[:2]
    in_dark = dict(re.findall(r"(--wb-[\w-]+): (.+?);", dark))
    rows, meaning = [], ""
    for note, name, value in re.findall(
        r"/\* (.+?) \*/|(--wb-[\w-]+): (.+?);", light.partition("{")[2]
    ):
        meaning = note or meaning
        if name:
            rows.append((meaning, f"`{name}`", value, in_dark.get(name, value)))
    return _table(("meaning", "token", "light", "dark"), rows)


def server_settings() -> Iterator[str]:
    """Give the settings of the server, as its configuration has them."""
    rows = []
    for name, trait in sorted(WarpbookApp.class_own_traits(config=True).items()):
        choices = trait.values if isinstance(trait, Enum) else ()
        of = f" ({', '.join(f'`{value}`' for value in choices)})" if choices else ""
        value = f"`{trait.default_value}`" if trait.default_value != "" else ""
        rows.append((f"`WarpbookApp.{name}`", value, f"{trait.help}{of}"))
    return _table(("setting", "default", "meaning"), rows)


def page_settings() -> Iterator[str]:
    """Give the settings of the page, as JupyterLab's form has them."""
    rows = []
    for name, of in json.loads(SCHEMA.read_text("utf-8"))["properties"].items():
        choices = ", ".join(f"`{choice}`" for choice in of.get("enum", ()))
        bounds = f"{of['minimum']} to {of['maximum']}" if "minimum" in of else choices
        rows.append((f"`{name}`", f"`{of['default']}`", bounds, of["description"]))
    return _table(("setting", "default", "values", "meaning"), rows)


def changes() -> Iterator[str]:
    """Give the changes of all techniques."""
    rows = (
        (", ".join(f"`{name}`" for name in kind.names), kind.what, kind.time)
        for technique in OWN
        for kind in technique.changes
    )
    return _table(("name", "what to change", "its time"), rows)


def checklist() -> Iterator[str]:
    """Give the questions of the checklist."""
    rows = ((f"`{question.name}`", question.no_where) for question in questions())
    return _table(("item", "`no`, where"), rows)


def trials() -> Iterator[str]:
    """Give the changes that `--try` measures."""
    rows = ((f"`{kind.name}`", kind.what, kind.not_where) for kind in experiments())
    return _table(("NAME", "what is tried", "not where"), rows)


def stalls() -> Iterator[str]:
    """Give the reasons why warps wait."""
    rows = (
        (f"`{name}`", one.words, one.advice, f"`{one.lab}`" if one.lab else "")
        for name, one in stall_reasons().items()
    )
    return _table(("CUPTI's name", "a warp", "what to do", "lab"), rows)


def rooms() -> Iterator[str]:
    """Give the rooms of each package, as their `__init__` says."""
    rows = []
    for package in PACKAGES:
        for room in sorted((ROOT / package).glob("*/__init__.py")):
            said = ast.get_docstring(ast.parse(room.read_text(encoding="utf-8"))) or ""
            imports = re.search(r"[Ii]mports (.+?)\.(?=\s|$)", said, re.DOTALL)
            of = " ".join(imports[1].split()) if imports else ""
            name = f"`{Path(package).name}/{room.parent.name}`"
            rows.append((name, said.partition("\n\n")[0], of))
    return _table(("room", "holds", "imports"), rows)


TABLES: dict[str, Callable[..., Iterator[str]]] = {
    "colours": colours,
    "command": command,
    "options": options,
    "metrics": metric,
    "server-settings": server_settings,
    "page-settings": page_settings,
    "changes": changes,
    "checklist": checklist,
    "trials": trials,
    "rooms": rooms,
    "stalls": stalls,
}


def _commands(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _call(parser: argparse.ArgumentParser) -> str:
    words = [parser.prog]
    for action in parser._actions:
        if not action.option_strings:
            word = action.metavar or "|".join(action.choices or (action.dest,))
            words.append(word if action.nargs in (None, "+") else f"[{word}]")
    return f"`{' '.join(words)}`"


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        is_inner = isinstance(action, argparse._SubParsersAction)
        if action.dest != "help" and not is_inner:
            yield _written(action), (action.help or "").replace("%%", "%")


def _shared_options(
    parsers: dict[str, argparse.ArgumentParser],
) -> Iterator[tuple[str, str, str]]:
    of: dict[tuple[str, str], list[str]] = {}
    for name, parser in parsers.items():
        for option in _options(parser):
            of.setdefault(option, []).append(name)
    for (option, meaning), names in of.items():
        if option.startswith("`-"):
            every = len(names) == len(parsers)
            yield option, "all" if every else ", ".join(names), meaning


def _written(action: argparse.Action) -> str:
    value = action.metavar or "|".join(map(str, action.choices or ()))
    if action.nargs == 0:
        value = ""
    elif not value:
        value = action.dest.upper()
    names = action.option_strings or [""]
    return ", ".join(f"`{f'{name} {value}'.strip()}`" for name in names)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for cells in (head, ("---",) * len(head), *rows):
        escaped = [cell.replace("|", "\\|") for cell in cells]
        yield f"| {' | '.join(escaped)} |".replace("  ", " ")


if __name__ == "__main__":
    sys.exit(main())
