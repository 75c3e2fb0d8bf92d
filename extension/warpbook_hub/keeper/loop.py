"""Says what is so, and makes it what the course service wants."""

from __future__ import annotations

import pwd
import signal
import time
from collections.abc import Callable, Sequence

from warpbook.hub_protocol import Grant, KeptGpu, Orders, Report
from warpbook_hub.keeper import acl, holders
from warpbook_hub.keeper.gpus import Gpu, energy_mj, gpu_of, is_busy, problem_of

#: from the signal that asks a process to end to the one that ends it
PATIENCE_S = 5.0
_POLL_S = 0.1


class Keeper:
    """Keeps the access lists of some devices to what is granted.

    It remembers grants only to end them in time while the service is away. What is on
    the lists is read anew each time, so that one that was killed leaves nothing behind
    that the next does not find.
    """

    def __init__(
        self,
        node: str,
        paths: Sequence[str],
        idle_end_s: float,
        spared: frozenset[int],
        say: Callable[[str], None],
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take what is kept.

        Args:
            node: the machine's name.
            paths: of the devices' nodes.
            idle_end_s: without work for so long a lease ends; 0: however long.
            spared: accounts whose access is not the keeper's, such as the graders'.
            say: tells whoever runs it.
            monotonic_s: the time.
        """
        self._node, self._paths, self._say = node, tuple(paths), say
        self._idle_end_ms = int(idle_end_s * 1000)
        self._spared = spared | {0}
        self._monotonic_s = monotonic_s
        #: by path: who may open it, and until when
        self._granted: dict[str, tuple[int, float]] = {}
        #: by path: since when its holders were asked to end
        self._asked_s: dict[str, float] = {}
        #: by path: the accounts that were seen to have it open
        self._seen: dict[str, set[int]] = {}
        #: paths that were found clear when they were looked at last
        self._clear: set[str] = set()
        self._problems: dict[str, str] = {}

    def look(self) -> Report:
        held = holders.holders(self._paths)
        for path in self._paths:
            self._seen[path] = {holder.uid for holder in held[path]} - self._spared
        return Report(
            self._node,
            tuple(self._kept(path) for path in self._paths),
            self._idle_end_ms,
        )

    def apply(self, orders: Orders, begun_s: float) -> None:
        """Take over all grants; who has none loses access when `enforce` is called.

        Args:
            orders: as the service has answered.
            begun_s: the monotonic time before it was asked, from which its times count.
        """
        gpus = {gpu_of(path).id: path for path in self._paths}
        granted = {}
        for grant in orders.grants:
            uid = self._uid(grant)
            if grant.gpu in gpus and uid is not None:
                granted[gpus[grant.gpu]] = (uid, begun_s + grant.left_ms / 1000)
        self._granted = granted

    def enforce(self) -> None:
        """Make access what is granted now; end who has a device open without it."""
        now_s = self._monotonic_s()
        self._granted = {
            path: (uid, end_s)
            for path, (uid, end_s) in self._granted.items()
            if end_s > now_s
        }
        for path in self._paths:
            try:
                self._enforce(path, now_s)
            except OSError as problem:
                self._tell(path, f"{path}: {problem.strerror}.")

    def revoke_all(self) -> None:
        """Take all access back and end who has it: nobody will do so later."""
        self._granted.clear()
        self.look()
        self.enforce()
        end_s = self._monotonic_s() + PATIENCE_S
        while self._asked_s and self._monotonic_s() < end_s:
            time.sleep(_POLL_S)
            self.look()
            if self._clear.issuperset(self._asked_s):
                return
        self.enforce()

    def _enforce(self, path: str, now_s: float) -> None:
        granted = self._granted.get(path)
        has_problem = bool(problem_of(path))
        uid = granted[0] if granted and not has_problem else None
        has_lost = False
        for other in acl.users(path) - self._spared - {uid}:
            acl.shut_out(path, other)
            has_lost = True
        if has_problem:
            # who has it open needs no grant for that
            return
        if uid is not None and not acl.is_let_in(path, uid):
            acl.let_in(path, uid)
        is_settled = (
            path in self._clear if uid is None else not self._seen[path] - {uid}
        )
        if is_settled and not has_lost:
            self._asked_s.pop(path, None)
            return
        # asked first, so that a program may still save what it has
        asked_s = self._asked_s.setdefault(path, now_s)
        is_patient = now_s - asked_s < PATIENCE_S
        holders.signal_holders(
            path,
            lambda owner: owner in self._spared or owner == uid,
            signal.SIGTERM if is_patient else signal.SIGKILL,
        )

    def _kept(self, path: str) -> KeptGpu:
        gpu = gpu_of(path)
        problem = problem_of(path)
        is_clear = False
        try:
            is_clear = not self._seen[path] and not acl.users(path) - self._spared
        except OSError as failure:
            problem = problem or f"{path}: {failure.strerror}."
        if is_clear and path not in self._clear:
            # who had it may have closed it, and have its memory mapped still
            users = {holder.uid for holder in holders.mapped(path)}
            is_clear = not users - self._spared
        (self._clear.add if is_clear else self._clear.discard)(path)
        self._tell(path, problem)
        return KeptGpu(
            gpu.id, gpu.name, problem, is_clear, self._is_busy(gpu), energy_mj(gpu)
        )

    def _is_busy(self, gpu: Gpu) -> bool | None:
        granted = self._granted.get(gpu.path)
        return is_busy(gpu, granted[0]) if granted else None

    def _uid(self, grant: Grant) -> int | None:
        try:
            uid = pwd.getpwnam(grant.username).pw_uid
        except (KeyError, ValueError):
            self._tell(grant.username, f"{grant.username}: no account here.")
            return None
        return None if uid in self._spared else uid

    def _tell(self, about: str, problem: str) -> None:
        if problem and self._problems.get(about) != problem:
            self._say(problem)
        self._problems[about] = problem
