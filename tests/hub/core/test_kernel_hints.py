"""Hints of kernels: shown only beside the facts that they are about, and briefly."""

from __future__ import annotations

import msgspec
import pytest

from tests.hub.core.course import Classroom
from tests.hub.core.test_nodes import Node, ask, gpu, holder, share
from warpbook.hub.errors import TooManyRequests
from warpbook.hub.keeping.erasing import erase
from warpbook.hub.nodes import campus, kernel_hints
from warpbook.hub.nodes.campus import BoardHolder
from warpbook.hub.nodes.kernel_hints import KEPT_MS, KernelHintBook, Said
from warpbook.kernel_hints_protocol import (
    MOST_KERNELS,
    MOST_MESSAGE_BYTES,
    MOST_NOTEBOOK,
    MOST_PROCESSES,
    KernelHint,
    KernelHints,
    KernelProcess,
    Policy,
)

DATABASES = ("sqlite", "postgres")
SERVER = "a" * 16


def said_of(
    *pids: int, uuid: str = "GPU-1", server: str = SERVER, idle_s: int | None = 2400
) -> KernelHints:
    processes = tuple(KernelProcess(uuid, pid) for pid in pids)
    hint = KernelHint(processes, idle_s is None, idle_s, "analysis.ipynb")
    return KernelHints(server, (hint,))


class Board:
    """A node with two processes of ada, one of bob, and one of an account of nobody."""

    def __init__(self, room: Classroom, policy: Policy) -> None:
        self.room, self.book = room, KernelHintBook()
        self.node = Node(room)
        self.set(policy)
        holders = (
            share(holder("ada"), pids=(11, 12)),
            share(holder("bob", uid=2), pids=(21,)),
            # it says that it is ada's
            share(holder("games", "ada", uid=3), pids=(31,)),
        )
        self.taken = self.node.tell(1, gpu(*holders))

    def set(self, policy: Policy) -> None:
        room = self.room
        with room.database.write() as connection:
            kernel_hints.set_policy(connection, room.now_ms, room.instructor, policy)

    def hear(self, username: str, message: KernelHints) -> None:
        self.book.note(username, self.room.now_ms, message)

    def holders(self) -> tuple[BoardHolder, ...]:
        def board(connection, now_ms):
            return campus.campus(connection, now_ms, self.book.now)

        (node,) = ask(self.room, board)
        assert node.gpus[0].holders is not None
        return node.gpus[0].holders

    def hints(self) -> list[tuple[Said, ...]]:
        """Give what is shown of ada, of bob, and of the account of nobody."""
        return [one.hints for one in self.holders()]


def test_nothing_is_taken_unless_the_hub_says_so(room: Classroom) -> None:
    with room.database.read() as connection:
        assert kernel_hints.policy(connection) == "off"
    board = Board(room, "off")
    assert not board.taken.wants_pids
    board.hear("ada", said_of(11))
    assert board.hints() == [(), (), ()]
    # nor were the PIDs kept that an agent told all the same
    board.set("notebooks")
    assert board.hints() == [(), (), ()]


def test_a_hint_is_shown_with_what_the_policy_allows(room: Classroom) -> None:
    board = Board(room, "notebooks")
    assert board.taken.wants_pids
    facts = [
        (one.username, one.idle_since_ms, one.busy_ratio) for one in board.holders()
    ]
    board.hear("ada", said_of(11))
    since_ms = room.now_ms - 2_400_000
    assert board.hints() == [(Said("analysis.ipynb", False, since_ms),), (), ()]
    # what the agent has found stays what is shown as found
    assert facts == [
        (one.username, one.idle_since_ms, one.busy_ratio) for one in board.holders()
    ]
    board.set("activity")
    assert board.hints()[0] == (Said("", False, since_ms),)


@pytest.mark.parametrize(
    ("who", "message"),
    [
        ("ada", said_of(21)),
        ("bob", said_of(11, 12)),
        # the environment is no account
        ("ada", said_of(31)),
        ("games", said_of(31)),
        ("ada", said_of(99)),
        ("ada", said_of(11, uuid="GPU-2")),
        ("nobody", said_of(11, 12, 21, 31)),
    ],
)
def test_nobody_speaks_of_what_is_not_theirs(
    room: Classroom, who: str, message: KernelHints
) -> None:
    board = Board(room, "notebooks")
    board.hear(who, message)
    assert board.hints() == [(), (), ()]


def test_a_hint_ends(room: Classroom) -> None:
    board = Board(room, "notebooks")
    board.hear("ada", said_of(11, idle_s=None))
    assert board.hints()[0] == (Said("analysis.ipynb", True, None),)
    room.now_ms += KEPT_MS - 1
    board.node.tell(2, gpu(share(holder("ada"), pids=(11,))))
    assert len(board.hints()[0]) == 1
    room.now_ms += 1
    assert board.hints() == [()]
    # another process now
    board.hear("ada", said_of(11))
    board.node.tell(3, gpu(share(holder("ada"), pids=(13,))))
    assert board.hints() == [()]


def test_who_is_erased_says_nothing(room: Classroom) -> None:
    board = Board(room, "notebooks")
    board.hear("ada", said_of(11))
    with room.database.write() as connection:
        assert kernel_hints.policy_for(connection, "ada") == "notebooks"
        assert kernel_hints.policy_for(connection, "games") == "off"
        erase(connection, room.now_ms, room.instructor, room.people["ada"], "asked")
        assert kernel_hints.policy_for(connection, "ada") == "off"
    assert not any(one.hints for one in board.holders())


def test_servers_say_a_little_and_not_often(room: Classroom) -> None:
    book, now_ms = KernelHintBook(), room.now_ms
    book.note("ada", now_ms, said_of(11))
    with pytest.raises(TooManyRequests):
        book.note("ada", now_ms + 30_000, said_of(12))
    for number in range(1, 5):
        book.note("ada", now_ms, said_of(11, server=f"{number:016x}"))
    with pytest.raises(TooManyRequests, match="5 servers"):
        book.note("ada", now_ms, said_of(11, server="f" * 16))
    # others are not kept from speaking, and the next minute is another
    book.note("bob", now_ms, said_of(21))
    book.note("ada", now_ms + 59_000, said_of(13))
    said = book.now.of("ada", now_ms + 59_000, "notebooks")
    assert len(said) == 5
    assert {one.pid for hint, _ in said for one in hint.processes} == {11, 13}


def test_the_most_that_a_server_says_is_not_too_much() -> None:
    processes = tuple(
        KernelProcess(f"GPU-57ab0000-0000-4000-8000-{number:012}", 2**22)
        for number in range(MOST_PROCESSES)
    )
    # four bytes each
    name = "𝄞" * MOST_NOTEBOOK
    hint = KernelHint(processes, False, 10**8, name)
    message = KernelHints(SERVER, (hint,) * MOST_KERNELS)
    encoded = msgspec.json.encode(message)
    assert len(encoded) <= MOST_MESSAGE_BYTES
    assert msgspec.json.decode(encoded, type=KernelHints) == message
