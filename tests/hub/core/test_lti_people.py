"""Who is of a platform's course: launches, rosters and names, on both databases."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from tests.hub.lti.platform import TEACHER, Member, Platform
from tests.hub.lti.world import COURSE, World, members
from warpbook_hub.course.courses import add_staff, person_of, remove_staff, viewer
from warpbook_hub.course.courses import members as members_of
from warpbook_hub.course.operators import name_operators, operator
from warpbook_hub.database.tables import AUDIT, LTI_PEOPLE, LTI_SCORES
from warpbook_hub.errors import BadRequest, Conflict, Forbidden
from warpbook_hub.keeping.erasure import erase
from warpbook_hub.lti import links

DATABASES = ("sqlite", "postgres")


def test_a_roster_of_several_pages_hides_who_left_and_loses_nobody(
    world: World,
) -> None:
    world.mark("bob", 5)
    world.rounds()
    listed = [Member(f"s-{name}", name) for name in ("ada", "cyd", "dee", "eve")]
    teacher = Member("t-2", "prof", (TEACHER,))
    world.platform.members = [
        *(*listed, teacher),
        Member("s-fay", "fay", status="Inactive"),
        Member("s-hal", "hal"),
    ]
    world.next_hour()
    world.platform.pages = 0
    world.rounds()
    assert world.platform.pages == 4
    with world.room.database.read() as connection:
        there = {one.username: one for one in members_of(connection, COURSE)}
        context = links.bound_context(connection, COURSE)
    hidden = {name for name, one in there.items() if one.is_hidden}
    assert hidden == {"bob"} and set(there) == {
        "grace",
        "bob",
        "ada",
        "cyd",
        "dee",
        "eve",
        "hal",
    }
    assert "3 added" in context.note and "1 hidden" in context.note
    # whoever comes back has their work and marks
    world.platform.members = members()
    world.next_hour()
    world.mark("bob", 6)
    world.rounds(2)
    assert world.sent("bob") == [5, 6]


def test_a_roster_without_user_names_hides_nobody(world: World) -> None:
    with world.room.database.write() as connection:
        connection.execute(LTI_PEOPLE.delete().where(LTI_PEOPLE.c.subject == "s-bob"))
    for name in ("", "Not a name!"):
        world.platform.members = [Member("s-ada", ""), Member("s-bob", name)]
        world.next_hour()
        world.rounds()
        with world.room.database.read() as connection:
            assert not any(one.is_hidden for one in members_of(connection, COURSE))
            note = links.bound_context(connection, COURSE).note
        assert "1 have no user name that can be used, so nobody was hidden" in note


def test_whoever_was_hidden_and_launches_is_looked_for_at_once(world: World) -> None:
    def hidden() -> set[str]:
        with world.room.database.read() as connection:
            there = members_of(connection, COURSE)
        return {one.username for one in there if one.is_hidden}

    bob = world.platform.members.pop(1)
    world.next_hour()
    world.rounds()
    assert hidden() == {"bob"}
    # of a launch alone nobody comes back
    world.launch("bob")
    world.rounds()
    assert hidden() == {"bob"}
    world.platform.members.append(bob)
    world.rounds()
    assert hidden() == {"bob"}
    world.launch("bob")
    world.rounds()
    assert not hidden()


def test_a_member_who_is_on_two_pages_counts_once(world: World) -> None:
    dee = Member("s-dee", "dee")
    world.platform.members = [dee, *members(), dee]
    world.next_hour()
    world.mark("ada", 7.5)
    world.rounds()
    assert world.sent("ada") == [7.5]
    with world.room.database.read() as connection:
        assert viewer(connection, COURSE, "dee").role == "learner"
        assert "4 learners: 1 added" in links.bound_context(connection, COURSE).note


@pytest.mark.sqlite
def test_a_roster_that_cant_be_written_holds_up_no_score(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with world.room.database.write() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER broken BEFORE INSERT ON people "
            "BEGIN SELECT RAISE(ABORT, 'no room for dee'); END"
        )
    world.platform.members.append(Member("s-dee", "dee"))
    world.next_hour()
    world.mark("ada", 7.5)
    world.rounds()
    assert world.sent("ada") == [7.5]
    with world.room.database.read() as connection:
        assert "failed" in links.bound_context(connection, COURSE).note
    assert "IntegrityError" in caplog.text and "dee" not in caplog.text
    # it waits its hour
    pages = world.platform.pages
    world.rounds()
    assert world.platform.pages == pages


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("elsewhere", "named a service elsewhere"),
        ("empty", "names no learner"),
        ("403", "Allow the tool its names and roles"),
        ("wrong", "can't be read"),
    ],
)
def test_a_roster_that_cant_be_trusted_changes_nothing(
    world: World, broken: str, words: str
) -> None:
    other = Platform([])
    other.start()
    if broken == "elsewhere":
        world.platform.pages_host = other.url
    elif broken == "empty":
        world.platform.members = []
    else:
        failure = 403 if broken == "403" else '{"members": 3}'
        world.platform.failures["members"] = [failure]
    world.next_hour()
    world.rounds()
    other.stop()
    with world.room.database.read() as connection:
        assert not any(one.is_hidden for one in members_of(connection, COURSE))
        assert words in links.bound_context(connection, COURSE).note
    # no token goes to another host
    assert not other.requests


def test_nobody_gets_the_name_of_another_person(world: World) -> None:
    with pytest.raises(Conflict, match="another person of the platform"):
        world.launch("ada", subject="s-mallory")
    with pytest.raises(Conflict, match="somebody who runs a course"):
        world.launch("grace", subject="s-mallory")
    # nor by the roster, before the one whose name it is has come
    with world.room.database.write() as connection:
        of_grace = LTI_PEOPLE.c.subject == "s-grace"
        connection.execute(LTI_PEOPLE.delete().where(of_grace))
    world.platform.members = [*members(), Member("s-mallory", "grace")]
    world.next_hour()
    world.rounds()
    with pytest.raises(Conflict):
        world.launch("grace", subject="s-mallory")
    # a person keeps their name, whatever the platform calls them later
    assert world.launch("ada", username="bob") == "ada"
    with pytest.raises(BadRequest):
        world.launch("new", username="../root")


def test_roles_come_from_launches_of_the_bound_course_alone(world: World) -> None:
    with pytest.raises(Forbidden, match="not of the course"):
        world.launch("mallory", "instructor", context="of another course")
    with pytest.raises(Forbidden):
        world.launch("mallory", "")
    assert world.launch("prof", "instructor") == "prof"
    assert world.launch("tim", "assistant") == "tim"
    assert world.launch("dee") == "dee"
    # who runs the course here is not made a learner
    world.launch("grace")
    with world.room.database.read() as connection:
        names = ("prof", "tim", "dee", "grace")
        roles = {name: viewer(connection, COURSE, name).role for name in names}
    assert roles == {
        "prof": "instructor",
        "tim": "assistant",
        "dee": "learner",
        "grace": "instructor",
    }


def test_a_launch_brings_no_role_back_that_was_taken_away(world: World) -> None:
    """Not even of somebody whom the platform's roster has as a learner by then."""
    for role in ("instructor", "assistant"):
        world.launch("otto", role)
        with world.room.database.write() as connection:
            who = (connection, world.room.now_ms, world.room.instructor, COURSE)
            remove_staff(*who, person_of(connection, "otto"))
        world.launch("otto", role)
        world.platform.members = [*members(), Member("s-otto", "otto")]
        world.next_hour()
        world.rounds()
        world.launch("otto", role)
        with world.room.database.write() as connection:
            otto = viewer(connection, COURSE, "otto")
            assert (otto.role, otto.is_hidden) == ("learner", False)
            # a person of the course may make them staff again
            who = (connection, world.room.now_ms, world.room.instructor, COURSE)
            add_staff(*who, "otto", role)


def test_a_course_is_untied_and_tied_to_another_one(world: World) -> None:
    world.mark("ada", 7.5)
    world.rounds()
    with world.room.database.write() as connection:
        links.unbind(connection, world.room.now_ms, world.room.instructor, COURSE)
    world.rounds()
    assert world.sent("ada") == [7.5]
    world.launch("grace", "instructor", context="the next term")
    with pytest.raises(Forbidden):
        world.launch("dee")
    assert world.launch("dee", context="the next term") == "dee"
    # it is told all that the other was told
    world.rounds(2)
    assert world.sent("ada") == [7.5, 7.5]
    assert sorted(row[0] for row in world.rows()) == ["replaced", "sent"]


def test_erasing_a_person_leaves_nothing_of_them_with_the_platforms(
    world: World,
) -> None:
    world.mark("ada", 7.5)
    world.mark("bob", 5)
    world.rounds()
    ada = world.room.people["ada"]
    with world.room.database.write() as connection:
        erase(connection, world.room.now_ms, world.room.instructor, ada, "asked for it")
        for table in (LTI_PEOPLE, LTI_SCORES):
            query = select(func.count()).where(table.c.person == ada)
            assert connection.execute(query).scalar() == 0
    world.rounds()
    assert [row[1] for row in world.rows()] == [5]


def test_who_is_unknown_to_the_platform_is_told(world: World) -> None:
    with world.room.database.write() as connection:
        connection.execute(LTI_PEOPLE.delete().where(LTI_PEOPLE.c.subject == "s-cyd"))
    world.platform.members = members()[:2]
    world.mark("cyd", 3)
    assert world.ledger().unknown == ("cyd",)
    world.launch("cyd")
    world.platform.members = members()
    world.rounds()
    assert world.sent("cyd") == [3] and not world.ledger().unknown


def test_a_launch_makes_an_operator_of_nobody_but_of_the_id_that_is_named(
    world: World,
) -> None:
    """The platform says what its people are called, so a name alone is no proof."""

    def start(*operators: str) -> None:
        with world.room.database.write() as connection:
            name_operators(connection, world.room.now_ms, operators)

    def ties() -> int:
        with world.room.database.read() as connection:
            notes = connection.execute(select(AUDIT.c.action)).scalars().all()
        return notes.count("operator added")

    def operates(name: str) -> bool:
        with world.room.database.read() as connection:
            return bool(operator(connection, name))

    start("opal")
    assert operates("opal")
    for role in ("instructor", "assistant", "learner"):
        with pytest.raises(Conflict, match="--operator opal=s-opal"):
            world.launch("opal", role)
    start("opal=s-mallory")
    start("opal=s-opal")
    assert ties() == 3, "who is tied to another id is noted"
    with pytest.raises(Conflict):
        world.launch("opal", "instructor", subject="s-mallory")
    # an administrator of the platform is no instructor there
    assert world.launch("opal", "learner") == "opal"
    assert operates("opal")
    # who had the name before it was an operator's is none by that, but of the course
    assert world.launch("prof", "instructor") == "prof"
    start("prof", "opal=s-mallory")
    assert not operates("prof") and not operates("opal")
    assert world.launch("prof", "instructor") == "prof"
    start("prof=s-prof")
    assert operates("prof")
