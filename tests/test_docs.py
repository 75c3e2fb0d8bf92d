"""The docs name every command, option, magic, setting and message there is."""

import argparse
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import warpbook
from warpbook import protocol
from warpbook.cli.main import make_parser
from warpbook.server.app import WarpbookApp
from warpbook_monitors import metrics
from warpbook_monitors.trace.figures import Lab
from warpbook_monitors.verdict_kinds import Kind

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = ("extension", "frontend", "labs", "monitors", "tests")
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
PROTOCOL = (ROOT / "docs" / "protocol.md").read_text()


def commands() -> Iterator[tuple[str, str]]:
    """Each command with each of its options."""
    for action in make_parser()._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        for name, parser in action.choices.items():
            yield name, f"warpbook {name}"
            for option in parser._actions:
                yield from ((name, each) for each in option.option_strings)


def messages() -> Iterator[type[msgspec.Struct]]:
    yield from get_args(protocol.ServerMessage)
    yield from get_args(protocol.ClientMessage)
    yield protocol.Capabilities
    yield protocol.StateNow


def section(text: str, heading: str) -> str:
    """The text below a heading, up to the next of its level or above."""
    level = heading.split(" ")[0]
    found = re.search(
        rf"^{re.escape(heading)}\n(.*?)(?=^#{{1,{len(level)}}} |\Z)",
        text,
        re.MULTILINE | re.DOTALL,
    )
    assert found, f"no heading {heading!r}"
    return found[1]


@pytest.fixture
def shell() -> InteractiveShell:
    """A shell that keeps no history on disk."""
    return InteractiveShell(config=Config(HistoryManager={"enabled": False}))


@pytest.mark.parametrize(("command", "word"), list(commands()))
def test_every_command_and_option_is_documented(command: str, word: str) -> None:
    text = section(REFERENCE, f"### `warpbook {command}`")
    assert word in text


def test_every_magic_and_its_options_are_documented(shell: InteractiveShell) -> None:
    magics = shell.magics_manager.magics
    before = {kind: set(names) for kind, names in magics.items()}
    warpbook.load_ipython_extension(shell)
    text = section(REFERENCE, "## In a notebook")
    for kind, names in magics.items():
        for name in set(names) - before[kind]:
            written = f"{'%%' if kind == 'cell' else '%'}{name}"
            assert f"`{written}`" in text
            for action in names[name].parser._actions:
                for option in action.option_strings:
                    assert re.search(rf"`({written} )?{option}\b", text), option
    warpbook.unload_ipython_extension(shell)


@pytest.mark.parametrize("name", warpbook.__all__)
def test_all_that_the_package_offers_is_documented(name: str) -> None:
    assert f"`warpbook.{name}" in section(REFERENCE, "## In a notebook")


@pytest.mark.parametrize("name", inspect.signature(warpbook.Monitor).parameters)
def test_every_argument_of_the_widget_is_documented(name: str) -> None:
    assert f"| `{name}` |" in section(REFERENCE, "## In a notebook")


@pytest.mark.parametrize("name", sorted(WarpbookApp.class_own_traits(config=True)))
def test_every_setting_of_the_server_is_documented(name: str) -> None:
    assert f"`WarpbookApp.{name}`" in section(REFERENCE, "## Settings of the server")


@pytest.mark.parametrize("message", list(messages()), ids=lambda each: each.__name__)
def test_every_message_and_field_is_documented(message: type[msgspec.Struct]) -> None:
    tag = message.__struct_config__.tag
    assert tag is None or f"`{tag}`" in PROTOCOL
    for field in msgspec.structs.fields(message):
        assert f"`{field.encode_name}`" in PROTOCOL


def test_every_close_code_is_documented() -> None:
    codes = {
        name: code for name, code in vars(protocol.CloseCode).items() if name.isupper()
    }
    for name, code in codes.items():
        assert f"| {code} | `{name}` |" in PROTOCOL


def test_every_metric_is_documented_with_its_meaning() -> None:
    text = section(REFERENCE, "## Metrics")
    for table in (metrics.NVML, metrics.GPM, metrics.HOST, metrics.MONITOR):
        for kind in table.values():
            assert f"| `{kind.name}` | {kind.unit} | {kind.meaning} |" in text


def test_every_source_folder_has_a_readme() -> None:
    assert [each for each in FOLDERS if not (ROOT / each / "README.md").is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda each: str(each.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_python_floor_is_the_same_everywhere() -> None:
    floor = re.search(r"python_requires = >=(\S+)", (ROOT / "setup.cfg").read_text())
    assert floor
    assert f"Python {floor[1]}" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_verdict_has_its_rule_an_example_and_a_lab(kind: str) -> None:
    text = section(REFERENCE, "## Verdicts of a trace")
    (row,) = re.findall(rf"^\| `{kind}` \|(.*)\|$", text, re.MULTILINE)
    assert len([cell for cell in row.split(" | ") if cell.strip()]) == 3


@pytest.mark.parametrize("lab", get_args(Lab))
def test_every_lab_that_a_finding_names_is_told(lab: str) -> None:
    assert f"`{lab}`" in section(REFERENCE, "## Verdicts of a trace")
