"""The docs name every command, option, magic, setting and message there is."""

import argparse
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from IPython.core.interactiveshell import InteractiveShell
from mkdocs.commands.build import build
from mkdocs.config import load_config
from traitlets.config import Config

import warpbook
from warpbook import protocol
from warpbook.backup.contents import KNOWN, MADE_ANEW
from warpbook.cli.doctor.check import Check
from warpbook.cli.main import make_parser
from warpbook.cli.versus import Versus
from warpbook.hub_protocol import SubmissionReceipt, SubmissionState, Verdict
from warpbook.reports.labs import LABS
from warpbook_hub.rules.totals import MarkState
from warpbook_hub.work.results import State
from warpbook_labs.course.quiz import Placement
from warpbook_labs.course.session import Graded
from warpbook_labs.grading import validation
from warpbook_labs.lab.entries import LabEntry, SoFar, TextEntry
from warpbook_labs.results.check import Status
from warpbook_labs.results.device import SpeedStatus
from warpbook_monitors.model_memory.view import ModelMemory
from warpbook_monitors.verdict_kinds import Kind
from warpbook_profiler.checklist.answers import Checklist
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.limits import Limits
from warpbook_profiler.report.report import JobReport
from warpbook_profiler.techniques.registry import questions, techniques

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = ("extension", "frontend", "labs", "monitors", "tests")
TEXT = "\n".join(page.read_text() for page in PAGES)
PROTOCOL, API, JSON, NOTEBOOK, SETTINGS, VERDICTS = (
    (ROOT / "docs" / "reference" / f"{name}.md").read_text()
    for name in ("protocol", "api", "json", "notebook", "settings", "verdicts")
)
SCHEMA = json.loads((ROOT / "frontend" / "schema" / "plugin.json").read_text())
#: what commands print with --json, and `to_dict()` gives
JSON_OBJECTS = (
    JobReport,
    CellProfile,
    Checklist,
    Versus,
    Check,
    Limits,
    ModelMemory,
    Graded,
    LabEntry,
    Placement,
    TextEntry,
    validation.Verdict,
    SubmissionReceipt,
    SubmissionState,
)


def structs(kind: object, known: dict[type[msgspec.Struct], None]) -> None:
    """Note a type and all that its fields hold."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind not in known:
            known[kind] = None
            for field in msgspec.structs.fields(kind):
                structs(field.type, known)
    for part in get_args(kind):
        structs(part, known)


def json_structs() -> list[type[msgspec.Struct]]:
    known: dict[type[msgspec.Struct], None] = {}
    for root in JSON_OBJECTS:
        structs(root, known)
    return list(known)


def messages() -> Iterator[type[msgspec.Struct]]:
    yield from get_args(protocol.ServerMessage)
    yield from get_args(protocol.ClientMessage)
    yield protocol.Capabilities
    yield protocol.StateNow


def section(text: str, heading: str) -> str:
    """The text below a heading, up to the next of its level or above."""
    level = heading.split(" ")[0]
    match = re.search(
        rf"^{re.escape(heading)}\n(.*?)(?=^#{{1,{len(level)}}} |\Z)",
        text,
        re.MULTILINE | re.DOTALL,
    )
    assert match, f"no heading {heading!r}"
    return match[1]


@pytest.fixture
def shell() -> InteractiveShell:
    """A shell that keeps no history on disk."""
    return InteractiveShell(config=Config(HistoryManager={"enabled": False}))


def test_tables_of_the_code_are_current() -> None:
    check = [sys.executable, ROOT / "tools" / "reference.py", "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    parts = re.findall("<!-- generated: command (.*) -->", TEXT)
    (commands,) = (
        action.choices
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    assert set(parts) == set(commands)


def test_every_magic_and_its_options_are_documented(shell: InteractiveShell) -> None:
    magics = shell.magics_manager.magics
    before = {kind: set(names) for kind, names in magics.items()}
    warpbook.load_ipython_extension(shell)
    for kind, names in magics.items():
        for name in set(names) - before[kind]:
            written = f"{'%%' if kind == 'cell' else '%'}{name}"
            assert f"`{written}`" in NOTEBOOK
            for action in names[name].parser._actions:
                for option in action.option_strings:
                    assert re.search(rf"`({written} )?{option}\b", TEXT), option
    warpbook.unload_ipython_extension(shell)


@pytest.mark.parametrize("name", warpbook.__all__)
def test_all_that_the_package_offers_is_documented(name: str) -> None:
    assert f"`warpbook.{name}" in NOTEBOOK


@pytest.mark.parametrize("name", inspect.signature(warpbook.Monitor).parameters)
def test_every_argument_of_the_widget_is_documented(name: str) -> None:
    assert f"| `{name}` |" in NOTEBOOK


@pytest.mark.parametrize("struct", json_structs(), ids=lambda kind: kind.__name__)
def test_every_object_that_commands_print_is_documented(
    struct: type[msgspec.Struct],
) -> None:
    """The site writes the keys of each from its source, by a line that names it."""
    assert f"\n- `{struct.__module__}.{struct.__name__}`\n" in JSON


@pytest.mark.parametrize("name", sorted({*warpbook.__all__} - {"__version__"}))
def test_all_that_the_package_offers_is_in_the_api(name: str) -> None:
    assert re.search(rf"^::: warpbook\.{name}\b", API, re.MULTILINE)


STATUS_PAGE = (ROOT / "docs" / "reference" / "statuses.md").read_text()
STATUSES = {
    Status: "## What became of it",
    SpeedStatus: "## How its speed is judged",
    State: "## Where it is in a class",
    MarkState: "## What a mark is",
    Verdict: "## What a class's marks go by",
    msgspec.structs.fields(SoFar)[0].type: "## How far you are with a lab",
}


@pytest.mark.parametrize(
    ("heading", "status"),
    [
        (heading, argument)
        for kind, heading in STATUSES.items()
        for argument in get_args(kind)
    ],
)
def test_every_status_of_a_submission_is_documented(heading: str, status: str) -> None:
    assert re.search(rf"^\| `{status}` \|", section(STATUS_PAGE, heading), re.MULTILINE)


@pytest.mark.parametrize("message", list(messages()), ids=lambda kind: kind.__name__)
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


def test_every_source_folder_has_a_readme() -> None:
    assert [
        folder for folder in FOLDERS if not (ROOT / folder / "README.md").is_file()
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def rooms() -> Iterator[Path]:
    for root in ("extension", "labs", "monitors"):
        for package in (ROOT / root).glob("warpbook*"):
            yield from (file.parent for file in package.rglob("*/__init__.py"))


def imported_rooms(room: Path) -> set[str]:
    """The rooms beside one that its modules name in an import."""
    beside = {folder.name for folder in room.parent.iterdir() if folder.is_dir()}
    prefix = ".".join(room.parent.relative_to(ROOT).parts[1:])
    imported = re.compile(rf"^\s*(?:from|import) {prefix}(?:\.| import )(\w+)", re.M)
    imports = (imported.findall(file.read_text()) for file in room.rglob("*.py"))
    return {name for names in imports for name in names} & beside - {room.name}


@pytest.mark.parametrize(
    "room", sorted(rooms()), ids=lambda room: str(room.relative_to(ROOT))
)
def test_a_room_says_which_rooms_it_imports(room: Path) -> None:
    said = (room / "__init__.py").read_text()
    imports = re.search(r"[Ii]mports? (.+?)\.\s", said, re.DOTALL)
    assert imports or "ay be imported" in said or "The top of" in said
    if imports and "what is below" not in said and "the rest" not in said:
        assert imported_rooms(room) <= set(re.findall(r"`([\w.]+)`", imports[1]))


@pytest.mark.parametrize("folder", ["how-to", "reference"])
def test_every_page_is_on_its_folders_list(folder: str) -> None:
    pages = {page.name for page in (ROOT / "docs" / folder).glob("*.md")}
    listed = (ROOT / "docs" / folder / "README.md").read_text()
    assert pages - {"README.md"} == set(re.findall(r"\]\(([\w-]+\.md)\)", listed))


def test_every_page_is_reached_by_links_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            links = re.findall(r"\]\(([^)#:\s]+\.md)\b", page.read_text())
            waiting += [(page.parent / link).resolve() for link in links]
    texts = (ROOT / "labs" / "texts").rglob("text.md")
    # a decision is reached from the page that it explains, or from its folder
    others = {"adr", "evidence", "examples"}
    pages = {page for page in (*PAGES, *texts) if not others & {*page.parts}}
    assert pages - reached == set()


def test_the_search_of_the_site_leaves_out_decisions_and_evidence(
    tmp_path: Path,
) -> None:
    # the API reference takes longest, and is not what this is about
    config = load_config(
        str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), plugins=["search"]
    )
    # strict: a row that a page would show with its bars ends it
    build(config)
    index = json.loads((tmp_path / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"how-to/record-a-trace.html", "tutorials/cluster-job.html"} <= found
    assert list((tmp_path / "adr").glob("*.html"))
    assert [name for name in found if name.startswith(("adr/", "evidence/"))] == []


PICTURES = sorted((ROOT / "docs" / "pictures").iterdir())


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_every_picture_is_small_and_on_a_page_in_words_too(picture: Path) -> None:
    is_film = picture.name.startswith("recording-")
    assert picture.stat().st_size <= (600_000 if is_film else 150_000)
    assert re.search(rf"!\[.{{10,}}\]\([./docs]*/pictures/{picture.name}\)", TEXT)


def test_what_contributing_says_to_change_is_there() -> None:
    table = section((ROOT / "CONTRIBUTING.md").read_text(), "## What to change where")
    roots = "extension|frontend|labs|monitors|tests"
    paths = re.findall(rf"`((?:{roots})/[^`]*)`", table)
    assert len(paths) > 10
    assert [path for path in paths if not list(ROOT.glob(path.rstrip("/")))] == []


def test_what_stays_in_the_home_is_on_the_page_on_uninstalling() -> None:
    page = (ROOT / "docs" / "how-to" / "uninstall.md").read_text()
    kept = [content.name.rpartition("/")[2] for content in KNOWN]
    assert [name for name in (*kept[:2], *MADE_ANEW) if name not in page] == []


def test_python_floor_is_the_same_everywhere() -> None:
    floor = re.search(r"python_requires = >=(\S+)", (ROOT / "setup.cfg").read_text())
    assert floor
    assert f"Python {floor[1]}" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_verdict_has_its_rule_an_example_and_a_lab(kind: str) -> None:
    text = VERDICTS
    (row,) = re.findall(rf"^\| `{kind}` \|(.*)\|$", text, re.MULTILINE)
    assert len([cell for cell in row.split(" | ") if cell.strip()]) == 3


@pytest.mark.parametrize("lab", sorted(LABS.values()))
def test_every_lab_that_a_finding_names_is_told(lab: str) -> None:
    assert f"`{lab}`" in VERDICTS


def test_every_item_of_the_checklist_is_documented_and_its_lab_is_there() -> None:
    text = (ROOT / "docs" / "how-to" / "use-the-checklist.md").read_text()
    items = questions()
    names = [item.name for item in items]
    assert re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE)[-len(names) :] == names
    labs = (ROOT / "labs" / "catalogue").glob("*/*/lab.toml")
    ids = {re.findall(r'^id = "(.*)"', lab.read_text())[0] for lab in labs}
    assert {item.lab for item in items} - {None} <= ids
    changed = {lab for technique in techniques() for lab in technique.lab_of.values()}
    assert changed - {None} <= ids
