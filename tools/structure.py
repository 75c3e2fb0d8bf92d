"""Print how large the sources are and how they hang together.

    python tools/structure.py [--json]

Counts every Python file that git tracks below the source roots: files, lines and code
lines (neither blank, nor comment, nor docstring) by package; the largest folders; short
files with one importer; imports of our own modules by a string; long functions; rooms
that import one another; and the walk of a recorded trace from its events to a verdict.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: of Python files, by the name under which they are counted
PARTS = {
    "monitors": "monitors/warpbook_monitors",
    "profiler": "monitors/warpbook_profiler",
    "labs": "labs/warpbook_labs",
    "catalogue": "labs/catalogue",
    "extension": "extension/warpbook",
    "hub": "extension/warpbook_hub",
    "tests": "tests",
    "benchmarks": "benchmarks",
    "tools": "tools",
}
#: what "source" means below
SOURCE = ("monitors", "profiler", "labs", "extension", "hub")
SHORT_LINES, LONG_LINES = 60, 50


def tracked(folder: str) -> list[Path]:
    """The Python files of a folder that git tracks."""
    command = ["git", "ls-files", "-z", "--", f"{folder}/*.py"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    return [ROOT / name for name in names.decode().split("\0") if name]


def code_lines(path: Path, tree: ast.Module) -> int:
    """Count the lines with a token that is neither comment nor docstring."""
    documented: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            if isinstance(first.value.value, str):
                documented |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT}
    skipped |= {tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
    lines: set[int] = set()
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type not in skipped:
                lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def module_name(path: Path, part: str) -> str:
    """The dotted name under which a file of a part is imported."""
    parts = list(path.relative_to((ROOT / PARTS[part]).parent).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.Module, known: set[str]) -> Iterator[tuple[str, bool]]:
    """Modules of ours that a module names, each with whether by a string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, False) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield (name if name in known else node.module), False
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if called in ("import_module", "__import__") and node.args:
                text = ast.unparse(node.args[0])
                if "warpbook" in text:
                    yield text, True


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Rooms that reach themselves, joined with those on the way."""

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for room in arrows.get(waiting.pop(), ()):
                if room not in seen:
                    seen.add(room)
                    waiting.append(room)
        return seen

    reached = {room: reach(room) for room in arrows}
    joined = {
        frozenset(
            other
            for other in reached
            if other in reached[room] and room in reached[other]
        )
        for room in reached
        if room in reached[room]
    }
    return sorted(sorted(circle) for circle in joined)


def walk() -> dict[str, int]:
    """Follow the recorded trace from its events to the report: what runs, how often."""
    for root in ("extension", "labs", "monitors"):
        sys.path.insert(0, str(ROOT / root))
    from warpbook_profiler.files.example import EXAMPLE_TRACE
    from warpbook_profiler.files.read_trace import read_trace
    from warpbook_profiler.verdict.analysis import analyse

    events, run = read_trace(EXAMPLE_TRACE)
    calls: Counter[tuple[str, str]] = Counter()

    def note(frame: object, event: str, _: object) -> None:
        code = frame.f_code  # type: ignore[attr-defined]
        if event == "call" and "warpbook_profiler" in code.co_filename:
            calls[
                code.co_filename,
                code.co_qualname if hasattr(code, "co_qualname") else code.co_name,
            ] += 1

    sys.setprofile(note)
    try:
        analyse(events, run)
    finally:
        sys.setprofile(None)
    return {
        "functions": len(calls),
        "modules": len({file for file, _ in calls}),
        "find_calls": sum(n for (_, name), n in calls.items() if name == "find_calls"),
    }


def measure() -> dict[str, object]:
    """Measure everything; the keys are what is printed."""
    files = {part: tracked(folder) for part, folder in PARTS.items()}
    trees = {
        path: ast.parse(path.read_bytes()) for paths in files.values() for path in paths
    }
    lines = {path: len(path.read_bytes().splitlines()) for path in trees}
    names = {module_name(path, part): path for part in SOURCE for path in files[part]}
    packages = {name for name, path in names.items() if path.name == "__init__.py"}
    importers: dict[str, set[str]] = defaultdict(set)
    arrows: dict[str, set[str]] = defaultdict(set)
    strings = 0

    def room(name: str) -> str:
        return name if name in packages else name.rpartition(".")[0]

    for name, path in names.items():
        for target, is_string in imports(trees[path], set(names)):
            strings += is_string
            if target in names and target != name:
                importers[target].add(name)
                # a package's own front may show what is in it
                inner = target.startswith(f"{room(name)}.") or name.startswith(
                    f"{room(target)}."
                )
                if room(name) != room(target) and not inner:
                    arrows[room(name)].add(room(target))
    functions = [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for part in SOURCE
        for path in files[part]
        for node in ast.walk(trees[path])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    modules = [name for name in names if name not in packages]
    short = [
        name
        for name in modules
        if lines[names[name]] < SHORT_LINES and len(importers[name]) == 1
    ]
    folders = Counter(path.parent for path in names.values())
    return {
        "parts": {
            part: {
                "files": len(paths),
                "lines": sum(lines[path] for path in paths),
                "code_lines": sum(code_lines(path, trees[path]) for path in paths),
            }
            for part, paths in files.items()
        },
        "source_files": len(names),
        "source_lines": sum(lines[path] for path in names.values()),
        "largest_folders": {
            str(folder.relative_to(ROOT)): count
            for folder, count in folders.most_common(5)
        },
        "short_files_with_one_importer": len(short) / len(modules),
        "imports_by_string": strings,
        "long_functions": sum(length > LONG_LINES for length in functions),
        "circles": circles(arrows),
        "walk": walk(),
    }


def main() -> None:
    """Print it, as a table for people or as JSON."""
    parser = argparse.ArgumentParser(description="Measure the sources.")
    parser.add_argument("--json", action="store_true")
    measured = measure()
    if parser.parse_args().json:
        print(json.dumps(measured, indent=1))
        return
    parts = measured.pop("parts")
    assert isinstance(parts, dict)
    for part, counts in parts.items():
        print(
            f"{part:12}"
            + "".join(f"{value:>9,} {key}" for key, value in counts.items())
        )
    for key, value in measured.items():
        print(f"{key}: {value}")


if __name__ == "__main__":
    main()
