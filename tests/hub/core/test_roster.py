"""A roster brings a class to what it says: twice changes nothing, nobody is lost."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.hub.core.course import CLOSES_MS, ROSTER, START_MS, Classroom, facts
from warpbook_hub import audit
from warpbook_hub.course.courses import (
    Course,
    add_staff,
    create_course,
    members,
    viewer,
)
from warpbook_hub.course.extensions import extend, extension, extensions
from warpbook_hub.course.roster import RosterChanges, alike, import_roster, preview
from warpbook_hub.course.roster_csv import (
    MOST_COLUMNS,
    MOST_ROWS,
    Roster,
    parse_roster,
    read_roster,
    rows_of_names,
)
from warpbook_hub.course.roster_text import MOST_BYTES
from warpbook_hub.course.windows import extended_after_reference, window_of
from warpbook_hub.errors import BadRequest, BadRoster, NotFound, NotOpen
from warpbook_hub.exports.grades import grades, totals_csv
from warpbook_hub.rules.lateness import HOUR_MS, Window, last_ms
from warpbook_hub.service.pages.gradebook_page import cells, rows_of
from warpbook_hub.work.marks import all_work
from warpbook_hub.work.submissions import submissions_of


def imported(room: Classroom, content: bytes) -> RosterChanges:
    with room.database.write() as connection:
        rows = read_roster(content)
        previewed = preview(connection, "gpu101", rows)
        done = import_roster(connection, START_MS, room.instructor, "gpu101", rows)
        assert previewed == done
    return done


def problems(content: bytes) -> list[tuple[int, str]]:
    with pytest.raises(BadRoster) as refused:
        read_roster(content)
    assert refused.value.http_status == 400
    return [(problem.line, problem.message) for problem in refused.value.problems]


def test_twice_changes_nothing_and_leaves_no_trace(room: Classroom) -> None:
    with room.database.read() as connection:
        before = len(audit.entries(connection))
    assert imported(room, ROSTER) == RosterChanges(unchanged=3)
    with room.database.read() as connection:
        assert len(audit.entries(connection)) == before


def test_a_drop_hides_and_never_deletes(room: Classroom) -> None:
    room.submit("ada")
    without_ada = b"\n".join(
        line for line in ROSTER.splitlines() if not line.startswith(b"ada")
    )
    assert imported(room, without_ada) == RosterChanges(hidden=("ada",), unchanged=2)
    with pytest.raises(NotOpen, match="roster"):
        room.submit("ada", "// more", replace=True)
    with room.database.read() as connection:
        assert viewer(connection, "gpu101", "ada").is_hidden
        assert len(submissions_of(connection, room.lab, room.people["ada"])) == 1
    assert imported(room, ROSTER).returned == ("ada",)
    room.submit("ada", "// more", replace=True)


def test_names_sections_and_teams_follow_the_roster(room: Classroom) -> None:
    moved = ROSTER.replace(b"Bob,Noyce,monday,red", b"Robert,Noyce,friday,blue")
    assert imported(room, moved).changed == ("bob",)
    with room.database.read() as connection:
        [bob] = [m for m in members(connection, "gpu101") if m.username == "bob"]
    assert (bob.first_name, bob.section, bob.team) == ("Robert", "friday", "blue")
    # of columns that it lacks a roster says nothing
    names = b"username\nada\nbob\ncyd\n"
    assert imported(room, names) == RosterChanges(unchanged=3)


def test_staff_stay_what_they_are(room: Classroom) -> None:
    changes = imported(room, ROSTER + b"grace,Grace,Hopper,monday,\n")
    assert changes.unchanged == 4
    assert imported(room, ROSTER) == RosterChanges(unchanged=3)
    with room.database.read() as connection:
        assert viewer(connection, "gpu101", "grace").role == "instructor"
        with pytest.raises(NotFound):
            viewer(connection, "gpu101", "mallory")


def test_a_group_of_the_hub_is_a_roster(room: Classroom) -> None:
    with room.database.write() as connection:
        rows = rows_of_names(["Ada", "ada", "dan"])
        args = (connection, START_MS, room.instructor, "gpu101", rows)
        changes = import_roster(*args)
        assert (changes.added, changes.hidden) == (("dan",), ("bob", "cyd"))
        sections = {m.username: m.section for m in members(connection, "gpu101")}
    assert (sections["ada"], sections["dan"]) == ("monday", "main")
    for names in ([], ["../x"]):
        with pytest.raises(BadRoster):
            rows_of_names(names)


def test_a_number_beside_the_username_is_left_out() -> None:
    (row,) = read_roster(b"id,student_id,username\n7,A-100,ada\n")
    assert row.username == "ada"


def test_spreadsheets_of_any_kind_are_read() -> None:
    exported = "\ufeffStudent ID;Last Name;First Name\r\nAda;Lovelace;Ada\r\n\r\n"
    [row] = read_roster(exported.encode())
    assert (row.username, row.last_name, row.section) == ("ada", "Lovelace", None)
    [row] = read_roster(b'username,last_name\nada,"Love, lace"\n')
    assert row.last_name == "Love, lace"


def taken(roster: Roster) -> dict[str, str]:
    return {one.field: one.name for one in roster.columns if one.field}


def unused(roster: Roster) -> list[str]:
    return [one.name for one in roster.columns if not one.field]


EXPORTS = Path(__file__).with_name("rosters")


def test_exports_of_other_programs_are_known_by_their_columns() -> None:
    canvas = parse_roster((EXPORTS / "canvas.csv").read_bytes())
    assert canvas.program == "Canvas" and not canvas.problems
    assert [(row.username, row.first_name, row.last_name) for row in canvas.rows] == [
        ("jdoe", "Jane", "Doe"),
        ("rroe", "Rick", "Roe"),
        ("zlefevre", "Zoé", "Lefèvre"),
    ]
    assert canvas.rows[0].section == "GPU-101 Monday"
    assert unused(canvas)[:2] == ["ID", "SIS User ID"]
    assert [one.line for one in canvas.skipped] == [2, 3, 7]
    moodle = parse_roster((EXPORTS / "moodle.csv").read_bytes())
    assert moodle.program == "Moodle" and moodle.encoding == "cp1252"
    # nothing says who logs in as what: somebody chooses
    [problem] = moodle.problems
    assert "ID-Nummer" in problem.message and not moodle.rows
    chosen = {"username": "ID-Nummer"}
    moodle = parse_roster((EXPORTS / "moodle.csv").read_bytes(), "", chosen)
    assert [(row.username, row.last_name, row.email) for row in moodle.rows] == [
        ("u1001", "Müller", "joerg@example.org"),
        ("u1002", "Schäfer", "ulrike@example.org"),
    ]
    assert moodle.rows[0].section == "Montag" and unused(moodle) == []
    assert [one.message for one in moodle.skipped] == ["no learner: Trainer/in"]
    nbgrader = parse_roster((EXPORTS / "nbgrader.csv").read_bytes())
    assert nbgrader.program == "nbgrader" and not nbgrader.problems
    assert [row.username for row in nbgrader.rows] == ["jdoe", "rroe"]
    grades = parse_roster((EXPORTS / "nbgrader_grades.csv").read_bytes())
    assert grades.program == "nbgrader" and not grades.problems
    assert [(row.line, row.username) for row in grades.rows] == [
        (2, "jdoe"),
        (3, "rroe"),
    ]
    assert [one.line for one in grades.skipped] == [4, 5]


@pytest.mark.parametrize(
    "program, header, fields",
    [
        (
            "Blackboard",
            "Last Name\tFirst Name\tUsername\tStudent ID\tLast Access\tAvailability",
            "last_name first_name username",
        ),
        ("LTI", "user_id,name,given_name,family_name,email,roles", "email"),
        ("Gradescope", "First Name,Last Name,SID,Email,Role,Sections", "section"),
        ("Moodle", "Prénom,Nom,Numéro d'identification,Adresse de courriel", "email"),
        ("Moodle", "Nombre,Apellido(s),Dirección de correo,Grupos", "section email"),
        ("", 'Title of a sheet,,\n,,\n"User name","Surname"', "username last_name"),
    ],
)
def test_columns_are_known_in_many_languages(
    program: str, header: str, fields: str
) -> None:
    for text in (header, f"\ufeff{header}", f"sep=,\n{header}"):
        if "\t" in header and "sep" in text:
            continue
        read = parse_roster(f"{text}\nx,y,z,a@b.org\n".encode())
        assert read.program == program
        assert {*fields.split()} <= {*taken(read)}


@pytest.mark.parametrize(
    "content", [b"id,group\n7,a\n", b"Student ID,Name\n7,a\n", b"user,login\n7,a\n"]
)
def test_no_column_is_guessed_to_be_the_user_name(content: bytes) -> None:
    [(line, words)] = problems(content)
    header = content.decode().splitlines()[0]
    assert line == 1 and header.replace(",", ", ") in words
    chosen = header.split(",")[0]
    read = parse_roster(content, "", {"username": chosen.upper()})
    [row] = read.rows
    assert row.username == "7" and not read.problems
    for wrong in ({"username": "nothing"}, {"password": chosen}):
        with pytest.raises(BadRoster, match="is called"):
            parse_roster(content, "", wrong)


def test_a_person_chooses_another_column_or_none() -> None:
    content = b"username,login name,email,section\nada,a1,ada@x.org,Monday\n"
    chosen = {"username": "login name", "section": ""}
    read = parse_roster(content, "", chosen)
    assert read.rows[0].username == "a1" and read.rows[0].section is None
    assert unused(read) == ["username", "section"]
    twice = parse_roster(b"user,Groups,Groups\nada,a,b\n", "", {"team": "groups (2)"})
    assert (twice.rows[0].section, twice.rows[0].team) == ("a", "b")


@pytest.mark.parametrize(
    "encoding, names",
    [
        ("cp1252", "Müller Lefèvre Peña"),
        ("mac_roman", "Müller García Lefèvre"),
        ("cp1250", "Wójcik Małgorzata Dąbrowski"),
        ("cp1251", "Иванов Смирнова"),
        ("shift_jis", "山田 鈴木"),
        ("utf-16", "Müller"),
        ("utf-16-le", "Müller"),
    ],
)
def test_any_encoding_is_detected_and_can_be_chosen(encoding: str, names: str) -> None:
    lines = "".join(f"u{n},{name}\n" for n, name in enumerate(names.split()))
    content = f"username,last_name\n{lines}".encode(encoding)
    for chosen in ("", encoding):
        read = parse_roster(content, chosen)
        assert (read.encoding, [row.last_name for row in read.rows]) == (
            encoding,
            names.split(),
        )
    # what bytes can't decide is said, with what else they may be
    assert parse_roster(content).is_encoding_sure == (encoding == "utf-16")
    if encoding == "cp1252":
        other = parse_roster(content, "cp1250")
        assert other.rows[1].last_name == "Lefčvre"
        assert "cp1250" in parse_roster(content).other_encodings


def test_a_line_that_names_the_separator_is_none_of_the_roster() -> None:
    [row] = read_roster(
        b"\xef\xbb\xbfsep=;\r\nusername;last_name\r\nada;Love, lace\r\n"
    )
    assert (row.username, row.last_name, row.line) == ("ada", "Love, lace", 3)
    assert problems(b"sep=;\nusername;team\n!;a\n")[0][0] == 3


def test_what_is_probably_one_is_mentioned(room: Classroom) -> None:
    rows = read_roster(
        "username,first_name,last_name,email,section,team\n"
        "adele,Adele,Müller,a@x.org,Monday,Blue\n"
        "bert,Bert,Maier,A@x.org,MONDAY,blue\n"
        "am2,Adèle,MUELLER,,tuesday,\n"
        "ada2,ADA,Lovelace,,tuesday,\n".encode()
    )
    with room.database.read() as connection:
        # a line that comes twice is one person
        notes = alike([*rows, rows[0]], members(connection, "gpu101"))
    assert notes == (
        "sections that differ in case, accents or signs alone: MONDAY, Monday, monday",
        "teams that differ in case, accents or signs alone: Blue, blue",
        "one e-mail address of several people: adele, bert",
        "one name, but for case and accents, of several people: adele, am2",
        "one name, but for case and accents, of several people: ada2, ada",
    )


@pytest.mark.parametrize(
    "content, line, words",
    [
        (b"", 1, "empty"),
        (b"name,email\nada,a@b\n", 1, "user names"),
        (b"username\n", 2, "nobody"),
        (b"user,login\nada,ada\n", 1, "More than one column"),
        (b"username\nada\nbob\nADA\n", 4, "line 2"),
        (b"username\n../../etc\n", 2, "can't be a user name"),
        (b"username\n=cmd|' /C calc'!A0\n", 2, "can't be a user name"),
        (b"username,first_name\nada,\x1b[2J\n", 2, "can't be shown"),
        ("username,first_name\nada,\u202egnp\n".encode(), 2, "can't be shown"),
        (b"username,first_name\nada," + b"x" * 101 + b"\n", 2, "100"),
        (b"username\nada\n\xff\xfe\n", 3, "user name"),
        (b"," * MOST_COLUMNS + b"username\n", 1, "columns"),
        (b"username\nada\n\0\n", 3, "NUL"),
        ("username,last_name\nada,M\ufffdller\n".encode(), 2, "decoded"),
        (b"username,team\n" + b"".join(b"u%d,red\n" % n for n in range(5)), 6, "red"),
        (b'username,first_name\nada,"' + b"x" * 200_000, 2, "CSV"),
        (b"x" * (MOST_BYTES + 1), 1, "MiB"),
        (
            b"username\n" + b"".join(b"u%d\n" % n for n in range(MOST_ROWS + 1)),
            MOST_ROWS + 3,
            "rows",
        ),
    ],
)
def test_a_bad_roster_is_refused_with_its_line(
    content: bytes, line: int, words: str
) -> None:
    [(at, message), *_] = problems(content)
    assert words in message and at == line


def test_all_problems_are_told_at_once() -> None:
    all_problems = problems(b"username\nada\n!\nbob\n?\nada\n")
    assert [line for line, _ in all_problems] == [3, 5, 6]


@given(some.binary(max_size=300))
def test_whatever_is_uploaded_is_read_or_refused(content: bytes) -> None:
    for whole in (content, b"username,first_name,team\n" + content):
        try:
            rows = read_roster(whole)
        except BadRoster as refused:
            assert refused.problems
        else:
            assert rows and all(row.username for row in rows)


def test_each_section_and_each_extension_has_its_dates(room: Classroom) -> None:
    ada, cyd = room.people["ada"], room.people["cyd"]
    with room.database.write() as connection:
        before = window_of(connection, room.lab, ada)
        assert before is not None
        due_ms, closes_ms = before.due_ms + HOUR_MS, before.closes_ms + HOUR_MS
        given_by = (START_MS, room.instructor, room.lab)
        connection_and = (connection, *given_by)
        extend(*connection_and, ada, due_ms, closes_ms, "was ill")
        assert window_of(connection, room.lab, ada) == Window(
            before.opens_ms, due_ms, closes_ms
        )
        assert window_of(connection, room.lab, cyd) == before
        [granted] = extensions(connection, room.lab)
        assert (granted.person, granted.reason) == (ada, "was ill")
        with pytest.raises(BadRequest, match="reason"):
            extend(*connection_and, ada, due_ms, closes_ms, "  ")
        with pytest.raises(BadRequest):
            extend(*connection_and, ada, closes_ms, due_ms, "backwards")
    room.now_ms = closes_ms - 1
    room.submit("ada")
    with pytest.raises(NotOpen):
        room.submit("cyd")


def test_an_extension_after_the_reference_was_shown_is_marked(room: Classroom) -> None:
    grader = room.grader()
    room.submit("ada")
    room.grade(grader, facts())
    end_ms = last_ms(CLOSES_MS) + 1
    marked: dict[str, int | None] = {}
    with room.database.write() as connection:
        for name, now_ms in (("ada", START_MS), ("bob", end_ms + 1), ("cyd", end_ms)):
            # bob's dates hide it again, and do not unsee it
            closes_ms = CLOSES_MS + (name != "ada") * HOUR_MS
            person = room.people[name]
            dates = (CLOSES_MS, closes_ms, "was ill")
            extend(connection, now_ms, "hub", room.lab, person, *dates)
            granted = extension(connection, room.lab, person)
            assert granted is not None
            marked[name] = granted.reference_ms
        told = grades(connection, end_ms, "gpu101")
        work = all_work(connection, end_ms, "gpu101")
        after = extended_after_reference(connection, "gpu101")
        people = {one.person: one for one in members(connection, "gpu101")}
    assert marked == {"ada": None, "bob": end_ms, "cyd": end_ms}
    rows = csv.DictReader(io.StringIO(totals_csv(told)))
    in_file = {row["student_id"]: "after the reference" in row["notes"] for row in rows}
    lab = room.lab
    in_page = {
        row.member.username: "after the reference"
        in cells(row, [lab], {lab: 10}, after)
        for row in rows_of(people, work, 0)
        if row.cells
    }
    assert in_file == in_page == {"ada": False, "bob": True, "cyd": True}


def test_a_roster_says_nothing_of_who_is_in_another_course(room: Classroom) -> None:
    """Names and addresses are a course's own, and no course sees another's."""
    with room.database.write() as connection:
        who = (connection, START_MS, room.instructor)
        create_course(*who, Course("other", "Other"))
        rows = read_roster(b"username\nada\n")
        import_roster(*who, "other", rows)
        [seen] = members(connection, "other")
        assert (seen.first_name, seen.last_name, seen.email) == ("", "", "")
        before = members(connection, "gpu101")
        rows = read_roster(b"username,first_name,last_name,email\nada,X,Y,x@evil\n")
        assert import_roster(*who, "other", rows).changed == ("ada",)
        add_staff(*who, "other", "grace", "assistant")
        assert members(connection, "gpu101") == before
        by_name = {one.username: one for one in members(connection, "other")}
    assert (by_name["ada"].first_name, by_name["ada"].email) == ("X", "x@evil")
