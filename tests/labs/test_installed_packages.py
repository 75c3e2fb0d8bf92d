"""Packages that bring labs, and a language of labs: those that work, and others."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.programs import ROOT
from tests.server_process import TOKEN, server
from tests.stub_nvml import StubNvml
from warpbook_labs.lab.files import CATALOGUE

EXAMPLES = ROOT / "docs" / "examples"
TEMPLATE = CATALOGUE.parent / "template"
MAIN = "import sys; from warpbook.cli.main import main; sys.exit(main())"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that both examples are installed into."""
    folder, copies = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("source")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    for name in ("lab_catalogue", "lab_language"):
        # pip builds in the folder of the source
        shutil.copytree(EXAMPLES / name, copies / name)
        command = [*pip, "--no-build-isolation", "--target", str(folder)]
        subprocess.run([*command, str(copies / name)], check=True)
    return folder


def paths(*folders: Path) -> dict[str, str]:
    ours = [ROOT / name for name in ("extension", "labs", "monitors")]
    return {"PYTHONPATH": os.pathsep.join(map(str, [*ours, *folders]))}


def labs(
    *arguments: str, site: tuple[Path, ...], here: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, "labs", *arguments],
        capture_output=True,
        text=True,
        cwd=here,
        env={**os.environ, **paths(*site), "XDG_DATA_HOME": str(here / "data")},
        timeout=300,
    )


def listed(*site: Path, here: Path) -> tuple[dict[str, dict], list[str]]:
    done = labs("list", "--json", site=site, here=here)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    return {lab["id"]: lab for lab in answer["labs"]}, answer["problems"]


def package(site: Path, name: str, points: str, labs_of: dict[str, str]) -> None:
    """Install a package by hand: entry points, and labs from their `lab.toml`."""
    info = site / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(points)
    (site / name).mkdir()
    (site / name / "__init__.py").write_text("raise SystemExit('it is imported')")
    for folder, text in labs_of.items():
        lab = site / name / "kernels" / folder
        lab.mkdir(parents=True)
        (lab / "lab.toml").write_text(text)


def test_labs_of_packages_are_listed_after_ours_and_opened(
    packages: Path, tmp_path: Path
) -> None:
    by_name, problems = listed(packages, here=tmp_path)
    assert problems == []
    assert list(by_name)[-2:] == ["warps-of-a-block", "best-sellers"]
    assert by_name["best-sellers"]["language"] == "sql"
    for name, source in (
        ("warps-of-a-block", "answers.py"),
        ("best-sellers", "query.sql"),
    ):
        opened = labs("open", name, site=(packages,), here=tmp_path)
        assert opened.returncode == 0, opened.stderr
        assert (tmp_path / name / source).is_file()
        assert list((tmp_path / name).glob("*.ipynb"))


@pytest.mark.parametrize("name", ["warps-of-a-block", "best-sellers"])
def test_right_and_wrong_sources_of_packages_are_told_apart(
    packages: Path, tmp_path: Path, name: str
) -> None:
    (folder,) = packages.glob(f"*/**/{name.replace('-', '_')}")
    (right,) = folder.glob("solutions/correct/*.[ps]*")
    (wrong,) = folder.glob("solutions/wrong/*.[ps]*")
    for action in ("check", "submit"):
        for file, status in ((right, 0), (wrong, 1)):
            done = labs(action, name, str(file), site=(packages,), here=tmp_path)
            assert done.returncode == status, done.stdout + done.stderr
    fair = labs("validate", name, site=(packages,), here=tmp_path)
    assert fair.returncode == 0, fair.stdout + fair.stderr


def test_a_query_is_shut_in_and_its_mistakes_are_told(
    packages: Path, tmp_path: Path
) -> None:
    for query, words in (
        ("SELECT FROM", "syntax error"),
        (f"ATTACH '{tmp_path}/x.db' AS x", "unable to open database"),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
            " SELECT SUM(i) FROM n",
            "Timed out",
        ),
    ):
        file = tmp_path / "query.sql"
        file.write_text(query)
        done = labs("check", "best-sellers", str(file), site=(packages,), here=tmp_path)
        assert done.returncode == 1 and words in done.stdout, done.stdout


def test_no_word_of_sqlite_tells_a_hidden_table(packages: Path, tmp_path: Path) -> None:
    """A query that is right for the tables shown reads another's into its error."""
    sales = "(SELECT coalesce(group_concat(item || amount), '') FROM sales)"
    query = (
        "SELECT item, sum(amount) AS total FROM sales GROUP BY item "
        f"HAVING {sales} IN (SHOWN) OR json_extract('{{}}', 'SECRET' || {sales}) "
        "ORDER BY total DESC, item"
    )
    file, shown = tmp_path / "query.sql", "'', 'gpu2,fan2'"
    for status in ("check", "submit"):
        file.write_text(query.replace("SHOWN", shown))
        done = labs(status, "best-sellers", str(file), site=(packages,), here=tmp_path)
        assert done.returncode == 1, done.stdout + done.stderr
        told = re.search(r"SECRET([a-z0-9,]*)", done.stdout)
        if told is not None:
            # of the table that is shown, the words are
            assert status == "check"
            shown += f", '{told[1]}'"
    assert "details are shown for visible cases only" in done.stdout


def test_a_broken_package_is_told_of_and_breaks_nothing(
    packages: Path, tmp_path: Path
) -> None:
    site, lab = tmp_path / "broken", (TEMPLATE / "plan" / "lab.toml").read_text()
    ours = lab.replace("LAB-ID", "vector-add")
    package(
        site,
        "shadow",
        "[warpbook.catalogues]\nshadow = shadow\ngone = gone.labs\nempty = json\n"
        "[warpbook.lab_languages]\ncuda = shadow:CUDA\nstrange = shadow:STRANGE\n",
        {
            "vector_add": ours,
            "another_name": ours,
            "strange_one": lab.replace("LAB-ID", "strange-one").replace(
                'language = "plan"', 'language = "strange"'
            ),
            "unknown_one": lab.replace("LAB-ID", "unknown-one").replace(
                'language = "plan"', 'language = "cobol"'
            ),
        },
    )
    alone, _ = listed(here=tmp_path)
    by_name, problems = listed(packages, site, here=tmp_path)
    assert by_name.keys() == alone.keys() | {"warps-of-a-block", "best-sellers"}
    assert by_name["vector-add"] == alone["vector-add"]
    text = "\n".join(problems)
    for words in (
        "(gone = gone.labs): there is no package `gone`",
        "(empty = json): there is no TRACK/LAB/lab.toml in it",
        "shadow/kernels/vector_add: ",
        "another_name/lab.toml: id: the folder must be called vector_add",
        "language: `strange` (shadow:STRANGE) can't be used: SystemExit",
        "language: nothing here brings `cobol`",
    ):
        assert words in text
    assert len(problems) == 6
    checked = labs(
        "check",
        "vector-add",
        str(CATALOGUE / "kernels" / "vector_add" / "reference.cu"),
        site=(site,),
        here=tmp_path,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    made = labs("new", "my-own", "--language", "plan", site=(site,), here=tmp_path)
    assert made.returncode == 0, made.stdout + made.stderr
    own = labs("validate", str(tmp_path / "my_own"), site=(site,), here=tmp_path)
    assert own.returncode == 0, own.stdout + own.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('name = "sql"', 'name = "mysql"'),
        ('suffix = ".sql"', 'suffix = "/../x"'),
        ('source_name = "query.sql"', 'source_name = "../query.sql"'),
        ('comment = "--"', 'comment = "\\n"'),
        ("functions = FUNCTIONS[1]", 'functions = ("main",)'),
        ("SQL = LabLanguage(SqlLanguage(), make_grader)", "SQL = SqlLanguage()"),
    ],
)
def test_a_language_that_lacks_something_is_refused(
    packages: Path, tmp_path: Path, change: str, words: str
) -> None:
    site = tmp_path / "site"
    shutil.copytree(packages, site)
    module = site / "warpbook_sql" / "__init__.py"
    module.write_text(module.read_text().replace(change, words))
    by_name, problems = listed(site, here=tmp_path)
    assert "warps-of-a-block" in by_name and "best-sellers" not in by_name
    (problem,) = problems
    assert "`sql` (warpbook_sql:SQL) can't be used: " in problem


def test_the_server_lists_labs_of_packages(
    packages: Path, tmp_path: Path, stub_nvml: StubNvml
) -> None:
    with server(tmp_path, stub_nvml, variables=paths(packages)) as jupyter:
        answer = requests.get(
            f"{jupyter.url}/warpbook/api/v1/labs",
            headers={"Authorization": f"token {TOKEN}"},
            timeout=60,
        )
    by_name = {lab["id"]: lab for lab in answer.json()["labs"]}
    assert by_name["best-sellers"]["language"] == "sql"
    assert "warps-of-a-block" in by_name
