"""One thread that writes, and commits what many ask for together.

What people ask for is written first, and few of the machines' writes with it, so that
no grader can make a person wait for longer than one commit.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from warpbook_hub.database.hub_database import HubDatabase
from warpbook_hub.errors import HubError

Value = TypeVar("Value")
#: one slow commit should not hold up more than these
_MOST_TOGETHER = 64
_MOST_OF_MACHINES = 4
#: in this order they are written
_PEOPLE, _MACHINES, _END = range(3)


class _Write(NamedTuple):
    rank: int
    #: of all, in the order in which they came
    number: int
    change: Callable[[Connection], Any]
    done: Future[Any]


class Writer:
    """Takes writes from any thread or event loop; none of them waits for the disk.

    `await asyncio.wrap_future(writer.submit(write))` gives the value of `write` once
    it is on the disk.
    """

    def __init__(self, database: HubDatabase) -> None:
        self._database = database
        self._writes: queue.PriorityQueue[_Write] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="warpbook-hub-writer")
        self._thread.start()

    def submit(
        self, write: Callable[[Connection], Value], is_machine: bool = False
    ) -> Future[Value]:
        """Have something written; the future is done once it is on the disk.

        What `write` raises is given to its own future only, and what it wrote is
        undone; others of the same commit are not touched. It may be called twice,
        where a commit failed for another's sake.

        Raises:
            RuntimeError: the writer is closed.
        """
        done: Future[Value] = Future()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("This writer is closed.")
            rank = _MACHINES if is_machine else _PEOPLE
            self._writes.put(_Write(rank, next(self._numbers), write, done))
        return done

    def close(self) -> None:
        """Write what was asked for, then end the thread."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                end: Future[Any] = Future()
                self._writes.put(_Write(_END, next(self._numbers), _nothing, end))
        self._thread.join()

    def _run(self) -> None:
        while (first := self._writes.get()).rank != _END:
            together = [first]
            while len(together) < _MOST_TOGETHER and not self._writes.empty():
                write = self._writes.get()
                machines = sum(one.rank == _MACHINES for one in together)
                is_later = write.rank == _MACHINES and machines >= _MOST_OF_MACHINES
                if is_later or write.rank == _END:
                    self._writes.put(write)
                    break
                together.append(write)
            # who no more waits for it has it not written
            wanted = [w for w in together if w.done.set_running_or_notify_cancel()]
            if not self._committed_together(wanted):
                for write in wanted:
                    self._commit_alone(write)

    def _committed_together(self, writes: list[_Write]) -> bool:
        """Commit all, or nothing of any because the database failed at one."""
        outcomes: list[tuple[_Write, Any, BaseException | None]] = []
        try:
            with self._database.write() as connection:
                for write in writes:
                    try:
                        with connection.begin_nested():
                            outcomes.append((write, write.change(connection), None))
                    except DBAPIError:
                        raise
                    # a bug in one write is told to who asked for it
                    except Exception as problem:  # noqa: BLE001
                        outcomes.append((write, None, problem))
        except (DBAPIError, HubError):
            return False
        for write, value, failure in outcomes:
            if failure is None:
                write.done.set_result(value)
            else:
                write.done.set_exception(failure)
        return True

    def _commit_alone(self, write: _Write) -> None:
        try:
            with self._database.write() as connection:
                value = write.change(connection)
        # whatever it is, somebody waits for it
        except BaseException as problem:  # noqa: BLE001
            write.done.set_exception(problem)
        else:
            write.done.set_result(value)


def _nothing(_: Connection) -> None:
    """Write nothing."""
