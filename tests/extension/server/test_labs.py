"""The labs' routes on a real server: list, open, hints, cards."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from tornado.httpclient import HTTPClientError

from warpbook_labs.course.store import Store
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.results.check import CaseResult, CheckResult

API = ("warpbook", "api", "v1", "labs")
PARTS = ("hints", "cards", "solution")
ATTACK = "<img src=x onerror=window.attacked=1>"


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person who has done nothing yet."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "warpbook" / "labs.db"


async def answer_of(jp_fetch, *path: str, **how) -> dict:
    return json.loads((await jp_fetch(*API, *path, **how)).body)


async def refused(code: int, coroutine) -> str:
    with pytest.raises(HTTPClientError) as error:
        await coroutine
    assert error.value.code == code
    return error.value.response.body.decode()


def hand_in(passed: bool, message: str = "") -> int:
    store = Store()
    number = store.add_submission("vector-add", "// mine", 7)
    case = CaseResult("a prime number", True, passed, message)
    status = "passed" if passed else "failed"
    store.add_result(
        number, CheckResult("vector-add", status, "So it went.", (case,), 3, 4)
    )
    return number


async def test_the_list_tells_needs_and_progress_and_runs_no_python_of_labs(
    jp_fetch,
) -> None:
    hand_in(passed=False, message="wrong")
    listed = await answer_of(jp_fetch)
    assert listed["problems"] == [] and listed["compiler"] and listed["gpus"] == 0
    numbers = [entry["number"] for entry in listed["labs"]]
    assert numbers == sorted(numbers) and len(numbers) >= 5
    (lab,) = [entry for entry in listed["labs"] if entry["id"] == "vector-add"]
    # said once for all labs
    assert lab["can_check"] and lab["why"] == ""
    assert "speed is not graded" in listed["notice"]
    assert (listed["next_lab"], lab["difficulty"]) == ("area-codes", "easy")
    assert lab["needs"] == ["NVRTC", "a GPU for speed"]
    assert lab["progress"] == {
        "state": "tried",
        "attempts": 1,
        "hints": 0,
        "right": 3,
        "of": 4,
    }
    assert not [name for name in sys.modules if name.startswith("warpbook_lab_")]


async def test_texts_are_listed_and_opened_as_labs_are(jp_fetch, jp_root_dir) -> None:
    texts = (await answer_of(jp_fetch))["texts"]
    assert [text["id"] for text in texts] == [
        "choosing-a-dtype",
        "cudnn-algorithms",
        "dgx-and-infiniband",
        "inference-ladder",
        "accelerator-generations",
        "memory-hierarchy",
    ]
    assert texts[0]["questions"] == 7 and "int8-linear" in texts[0]["labs"]
    opened = await answer_of(
        jp_fetch, "dgx-and-infiniband", "open", method="POST", body=""
    )
    assert opened["path"] == "labs/dgx-and-infiniband/dgx-and-infiniband.ipynb"
    nbformat.validate(nbformat.read(jp_root_dir / opened["path"], as_version=4))


async def test_pages_that_ask_at_once_are_all_answered(jp_fetch) -> None:
    listed = await asyncio.gather(*(answer_of(jp_fetch) for _ in range(4)))
    assert all(listing == listed[0] for listing in listed)


async def test_opening_writes_a_notebook_and_never_over_the_persons_own(
    jp_fetch, jp_root_dir
) -> None:
    opened = await answer_of(jp_fetch, "vector-add", "open", method="POST", body="")
    assert opened["path"] == "labs/vector-add/vector-add.ipynb"
    notebook = jp_root_dir / opened["path"]
    written = nbformat.read(notebook, as_version=4)
    nbformat.validate(written)
    assert all(not cell.get("outputs") for cell in written.cells)
    assert (notebook.parent / "coalesced.svg").is_file()
    notebook.write_text("mine")
    (notebook.parent / "kernel.cu").write_text("mine, too")
    # both at once, as two impatient clicks
    await asyncio.gather(
        *(
            answer_of(jp_fetch, "vector-add", "open", method="POST", body="")
            for _ in range(2)
        )
    )
    assert notebook.read_text() == "mine"
    assert (notebook.parent / "kernel.cu").read_text() == "mine, too"


async def test_hints_open_one_by_one(jp_fetch) -> None:
    none = await answer_of(jp_fetch, "vector-add", "hints")
    assert (none["of"], none["hints"]) == (4, [])
    for count in (1, 2, 3, 4, 4):
        answer = await answer_of(
            jp_fetch, "vector-add", "hints", method="POST", body=""
        )
        assert len(answer["hints"]) == count
    assert "`ceil_div(n, 256)`" in answer["hints"][1]


async def test_cards_come_newest_first_without_seeds_and_bounded(jp_fetch) -> None:
    hand_in(passed=False, message=ATTACK * 100 + "\x1b[31m")
    newest = hand_in(passed=True)
    body = (await jp_fetch(*API, "vector-add", "cards")).body.decode()
    cards = json.loads(body)["cards"]
    assert [card["submission"] for card in cards] == [newest, newest - 1]
    assert [card["number"] for card in cards] == [2, 1]
    assert cards[0]["passed"] and cards[0]["first_failure"] == ""
    assert cards[1]["first_failure"].startswith(f"a prime number: {ATTACK}")
    assert len(cards[1]["first_failure"]) <= 500
    assert "seed" not in body and "// mine" not in body


async def test_the_solution_comes_after_a_pass(jp_fetch) -> None:
    hand_in(passed=False)
    said = await refused(409, jp_fetch(*API, "vector-add", "solution"))
    assert "once a submission of yours has passed" in said
    hand_in(passed=True)
    solution = await answer_of(jp_fetch, "vector-add", "solution")
    assert (
        "bool is_aligned" in solution["reference"] and solution["file"] == "kernel.cu"
    )
    assert "bound by memory" in " ".join(solution["discussion"].split())
    assert {"name", "reason"} == set(solution["mistakes"][0])


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", ("no-such-lab", "open"), 404),
        ("GET", ("no-such-lab", "hints"), 404),
        ("GET", ("no-such-lab", "cards"), 404),
        ("GET", ("no-such-lab", "solution"), 404),
        ("GET", ("..%2F..%2Ftour", "cards"), 404),
        ("GET", ("vector-add", "open"), 405),
    ],
)
async def test_what_is_no_lab_is_refused(jp_fetch, method, path, code) -> None:
    body = "" if method == "POST" else None
    await refused(code, jp_fetch(*API, *path, method=method, body=body))


@pytest.mark.parametrize("path", [(), *(("vector-add", part) for part in PARTS)])
async def test_nothing_is_told_without_a_token(jp_fetch, path) -> None:
    await refused(403, jp_fetch(*API, *path, headers={"Authorization": ""}))


async def test_nothing_is_opened_without_a_token(jp_fetch, jp_root_dir) -> None:
    asking = jp_fetch(
        *API,
        "vector-add",
        "open",
        method="POST",
        body="",
        headers={"Authorization": ""},
    )
    await refused(403, asking)
    assert not (jp_root_dir / "labs").exists()


async def test_a_damaged_store_leaves_the_list(jp_fetch, data: Path) -> None:
    data.parent.mkdir(parents=True, exist_ok=True)
    data.write_bytes(b"not a database at all" * 100)
    listed = await answer_of(jp_fetch)
    assert all(lab["progress"] is None for lab in listed["labs"])
    assert "the file is damaged" in listed["problems"][0]
    reason = await refused(409, jp_fetch(*API, "vector-add", "cards"))
    assert "the file is damaged" in reason


def test_without_sqlalchemy_the_list_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "sqlalchemy").mkdir()
    (tmp_path / "sqlalchemy" / "__init__.py").write_text("raise ImportError('absent')")
    code = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, *{sys.path!r}]\n"
        "from warpbook.server.labs.labs_work import labs\n"
        "found = labs(0)\n"
        "print(len(found.labs), found.problems[0])\n"
        "print(sorted({'torch', 'warpbook.kernel'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said, loaded = done.stdout.splitlines()
    assert said.startswith(f"{len(list(CATALOGUE.glob('*/*/lab.toml')))} ")
    assert "pip install 'warpbook[labs]'" in said
    assert loaded == "[]", done.stderr


async def test_a_quiz_is_asked_marked_and_names_a_lab(jp_fetch) -> None:
    async def answer(*path: str, **params: str) -> dict:
        path = (*API[:-1], "quizzes", *path)
        return json.loads((await jp_fetch(*path, params=params)).body)

    sheet = await answer("placement")
    assert len(sheet["questions"]) == 21 and sheet["notice"] == ""
    assert set(sheet["questions"][0]) == {"lab", "ask", "code", "choices"}
    right = await answer("placement", "mark", question="1", answer="c")
    assert right["is_right"] and right["words"].startswith(
        "Right: c, `(z * h + y) * w + x`. x counts"
    )
    unknown = await answer("dgx-and-infiniband", "mark", question="6", answer="?")
    assert unknown["words"].startswith("Not answered: the right choice is a, ")
    begin = await answer("placement", "begin", wrong="3,2")
    assert begin["lab"] == "vector-add" and "Begin with 2 Vector" in begin["words"]
    for bad in ({"question": "0", "answer": "a"}, {"question": "1", "answer": "--x"}):
        await refused(400, answer("placement", "mark", **bad))
    reason = await refused(409, answer("placement", "mark", question="22", answer="a"))
    assert "no question 22" in reason
    assert "no text `nowhere`" in await refused(404, answer("nowhere"))


async def test_courses_are_the_hubs_and_none_without_one(
    jp_fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = (*API[:-1], "courses")
    assert json.loads((await jp_fetch(*path)).body) == {
        "courses": [],
        "next_lab": None,
        "problem": "",
    }
    monkeypatch.setenv("WARPBOOK_HUB_URL", "no address")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")
    answer = (await jp_fetch(*path)).body.decode()
    assert "no address of a hub" in json.loads(answer)["problem"]
    assert "secret" not in answer
