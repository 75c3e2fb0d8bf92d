"""Schedules of an all-reduce, executed message by message, and their time."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from warpbook_labs.lab.python.questions import Question

Cluster = dict[str, Any]
Schedule = list[list[int]]
#: chunks that a step sends, by sender and receiver
Step = dict[tuple[int, int], int]

_MOST_CHUNKS = 1024
_EXACT, _SLOWER, _CLEAR = 1e-6, 1.1, 1.25
_HALVING, _LEVELS = "halving and doubling", "two levels"


class _BrokenRule(ValueError):
    """A schedule can't be run, or leaves no all-reduce; the message names the rule."""


class _Message(NamedTuple):
    step: int
    sender: int
    receiver: int
    chunk: int
    adds: int


def _messages(ranks: int, schedule: Schedule) -> list[_Message]:
    """Read rows, in the order of their steps.

    Raises:
        _BrokenRule: a row is none, or names what is not there.
    """
    for row in schedule:
        if len(row) != len(_Message._fields):
            words = ", ".join(_Message._fields)
            raise _BrokenRule(f"A row has {len(row)} numbers; it must have {words}.")
        message = _Message(*row)
        if message.adds not in (0, 1) or message.step < 0:
            raise _BrokenRule(f"{row}: `adds` is 0 or 1, and steps begin at 0.")
        for rank in (message.sender, message.receiver):
            if not 0 <= rank < ranks:
                raise _BrokenRule(f"{row}: there is no rank {rank} among {ranks}.")
        if message.sender == message.receiver:
            raise _BrokenRule(f"{row}: a rank sends nothing to itself.")
        if not 0 <= message.chunk < _MOST_CHUNKS:
            raise _BrokenRule(f"{row}: chunks are numbered 0 to {_MOST_CHUNKS - 1}.")
    return sorted(_Message(*row) for row in schedule)


def _chunks(messages: Iterable[_Message]) -> int:
    return 1 + max((message.chunk for message in messages), default=0)


def _by_step(messages: list[_Message]) -> list[list[_Message]]:
    groups = itertools.groupby(messages, key=lambda message: message.step)
    return [list(sent) for _, sent in groups]


def _execute(ranks: int, messages: list[_Message]) -> None:
    """Run a schedule on vectors, in which rank r begins with the r-th unit vector.

    Messages are linear, so that what holds for these vectors holds for all buffers.

    Raises:
        _BrokenRule: a message can't be sent, or a rank ends without the whole sum.
    """
    # of rank, chunk and part: how often a rank's part is in what a rank has of a chunk
    held = np.zeros((ranks, _chunks(messages), ranks), np.int8)
    for rank in range(ranks):
        held[rank, :, rank] = 1
    for sent in _by_step(messages):
        _refuse_busy_ports(sent[0].step, sent)
        # all messages of a step leave before one arrives
        values = [held[message.sender, message.chunk].copy() for message in sent]
        for message, value in zip(sent, values, strict=True):
            _receive(held, message, value)
    unfinished = np.argwhere(held != 1)
    if len(unfinished):
        rank, chunk, _ = unfinished[0]
        raise _BrokenRule(
            f"At the end rank {rank} does not have the sum of chunk {chunk}: it lacks "
            f"{_ranks(np.flatnonzero(held[rank, chunk] == 0))}."
        )


def _receive(held: np.ndarray, message: _Message, value: np.ndarray) -> None:
    step, sender, receiver, chunk, adds = message
    if adds:
        value = held[receiver, chunk] + value
        twice = np.flatnonzero(value > 1)
        if len(twice):
            raise _BrokenRule(
                f"Step {step}: rank {receiver} adds chunk {chunk} of rank {sender}, "
                f"but has the part of {_ranks(twice)} already: it would count twice."
            )
    elif not value.all():
        raise _BrokenRule(
            f"Step {step}: rank {sender} sends chunk {chunk} as a finished sum to rank "
            f"{receiver}, and does not have it yet: it lacks "
            f"{_ranks(np.flatnonzero(value == 0))}."
        )
    held[receiver, chunk] = value


def _refuse_busy_ports(step: int, sent: list[_Message]) -> None:
    receivers, senders = defaultdict(set), defaultdict(set)
    for message in sent:
        receivers[message.sender].add(message.receiver)
        senders[message.receiver].add(message.sender)
    for verb, peers in (("sends to", receivers), ("receives from", senders)):
        for rank, others in peers.items():
            if len(others) > 1:
                raise _BrokenRule(
                    f"Step {step}: rank {rank} {verb} {_ranks(sorted(others))}. A port "
                    "has one message each way in a step."
                )
    if len({message[:4] for message in sent}) < len(sent):
        raise _BrokenRule(f"Step {step} has the same chunk twice in a message.")


def _ranks(ranks: Sequence[int]) -> str:
    few = ", ".join(str(rank) for rank in ranks[:4])
    few += " and others" if len(ranks) > 4 else ""
    return f"rank {few}" if len(ranks) == 1 else f"ranks {few}"


def _steps(messages: list[_Message]) -> list[Step]:
    """Count the chunks of each message; those of a step between two ranks are one."""
    return [
        Counter((message.sender, message.receiver) for message in sent)
        for sent in _by_step(messages)
    ]


def _seconds(cluster: Cluster, size_bytes: int, schedule: Schedule) -> float:
    """Give the time of a valid schedule: the sum of its steps."""
    messages = sorted(_Message(*row) for row in schedule)
    chunk_bytes = size_bytes / _chunks(messages)
    return sum(_step_s(cluster, chunk_bytes, step) for step in _steps(messages))


def _step_s(cluster: Cluster, chunk_bytes: float, step: Step) -> float:
    groups, slowest_s = cluster["groups"], 0.0
    uplinks: Counter[tuple[str, int]] = Counter()
    for (sender, receiver), count in step.items():
        if groups[sender] == groups[receiver]:
            sent_s = count * chunk_bytes / cluster["port_bytes_per_s"]
            slowest_s = max(slowest_s, cluster["port_latency_s"] + sent_s)
        else:
            uplinks["out", groups[sender]] += count
            uplinks["in", groups[receiver]] += count
    if uplinks:
        sent_s = max(uplinks.values()) * chunk_bytes / cluster["uplink_bytes_per_s"]
        slowest_s = max(slowest_s, cluster["uplink_latency_s"] + sent_s)
    return slowest_s


def _around(
    order: Sequence[int], parts: list[list[int]], first_step: int, adds: int
) -> Schedule:
    """Pass parts around a ring: a reduce-scatter if they are added, else an all-gather.

    After the former, the rank at a place has the next place's part.
    """
    size = len(order)
    return [
        [first_step + turn, rank, order[(place + 1) % size], chunk, adds]
        for turn in range(size - 1)
        for place, rank in enumerate(order)
        for chunk in parts[(place - turn + 1 - adds) % size]
    ]


def _ring(order: Sequence[int]) -> Schedule:
    parts = [[chunk] for chunk in range(len(order))]
    return _around(order, parts, 0, 1) + _around(order, parts, len(order) - 1, 0)


def _two_levels(groups: list[list[int]]) -> Schedule:
    """Reduce-scatter in each group, all-reduce across, all-gather in each group."""
    across, within = len(groups), len(groups[0])
    parts = [list(range(i * across, (i + 1) * across)) for i in range(within)]
    last, rows = within - 1 + 2 * (across - 1), []
    for group in groups:
        rows += _around(group, parts, 0, 1) + _around(group, parts, last, 0)
    for place in range(within):
        peers = [group[place] for group in groups]
        pieces = [[chunk] for chunk in parts[(place + 1) % within]]
        rows += _around(peers, pieces, within - 1, 1)
        rows += _around(peers, pieces, within + across - 2, 0)
    return rows


def _tree(groups: list[list[int]]) -> Schedule:
    """Add up to the first of each group, then to the first of all, and go back."""
    up: Schedule = []
    first_step = 0
    for level in (groups, [[group[0] for group in groups]]):
        depth = (len(level[0]) - 1).bit_length()
        for step, members in itertools.product(range(depth), level):
            for low in range(0, len(members) - (1 << step), 2 << step):
                pair = members[low + (1 << step)], members[low]
                up.append([first_step + step, *pair, 0, 1])
        first_step += depth
    last = 2 * first_step - 1
    return up + [[last - step, low, high, 0, 0] for step, high, low, _, _ in up]


def _halving_doubling(order: Sequence[int]) -> Schedule:
    """Exchange halves with neighbours first, so that least goes farthest."""
    bits = len(order).bit_length() - 1
    size, extra = 1 << bits, len(order) - (1 << bits)
    core = [*order[1 : 2 * extra : 2], *order[2 * extra :]]
    folds = list(zip(order[0 : 2 * extra : 2], order[1 : 2 * extra : 2], strict=True))
    rows = [[0, *pair, chunk, 1] for pair in folds for chunk in range(size)]
    for bit, place, chunk in itertools.product(*map(range, (bits, size, size))):
        other = place ^ 1 << bit
        if not (chunk ^ other) % (2 << bit):
            rows.append([1 + bit, core[place], core[other], chunk, 1])
        if not (chunk ^ place) % (2 << bit):
            rows.append([2 * bits - bit, core[place], core[other], chunk, 0])
    last = 2 * bits + 1
    rows += [[last, *pair[::-1], chunk, 0] for pair in folds for chunk in range(size)]
    return rows


def _members(cluster: Cluster) -> list[list[int]]:
    members = defaultdict(list)
    for rank, group in enumerate(cluster["groups"]):
        members[group].append(rank)
    return [members[group] for group in sorted(members)]


def _known(cluster: Cluster) -> dict[str, Schedule]:
    """Give the schedules of the text, with ranks in the order of their groups."""
    groups = _members(cluster)
    order = [rank for group in groups for rank in group]
    known = {
        "a ring": _ring(order),
        _HALVING: _halving_doubling(order),
        "a tree": _tree(groups),
    }
    return known | ({_LEVELS: _two_levels(groups)} if len(groups) > 1 else {})


#: of what learners see: groups, ranks of each, links, about so many bytes, and the
#: schedules that are needed, since the others are clearly slower
_SCENES: dict[str, tuple[tuple[int, ...], tuple[int, ...], str, float, set[str]]] = {
    "one host, a large buffer": ((1,), (5, 6, 7, 11, 13), "NVLink", 1e9, {"a ring"}),
    "one host, a middling buffer": ((1,), (8, 16), "NVLink", 4e6, {_HALVING}),
    "one host, a small buffer": ((1,), (5, 8, 11), "NVLink", 3e4, {_HALVING, "a tree"}),
    "PCIe switches, a large buffer": ((2,), (2, 3, 4), "PCIe", 1e9, {"a ring"}),
    "hosts, a large buffer": ((2, 3), (3, 5, 7), "hosts", 1e9, {_LEVELS}),
    "hosts of a power of two": ((2,), (4, 8), "hosts", 1e8, {_LEVELS, _HALVING}),
    "hosts, a small buffer": ((2, 3, 4), (5, 6, 7), "hosts", 2e3, {"a tree"}),
}
#: bytes per second one way and seconds, of ports and of the uplinks of a group
_LINKS = {
    "NVLink": ((300e9, 450e9), (2e-6, 3e-6), (50e9,), (1e-5,)),
    "PCIe": ((32e9, 64e9), (5e-6, 8e-6), (0.0,), (1e-5, 1.5e-5)),
    "hosts": ((300e9, 450e9), (3e-6, 5e-6), (12.5e9, 25e9, 50e9), (1e-5, 1.2e-5)),
}


def _drawn_cluster(across: int, within: int, links: str, rng: random.Random) -> Cluster:
    port, port_s, uplink, uplink_s = (rng.choice(choices) for choices in _LINKS[links])
    groups = [group for group in range(across) for _ in range(within)]
    rng.shuffle(groups)
    return {
        "groups": groups,
        "port_bytes_per_s": port,
        "port_latency_s": port_s,
        # a switch of PCIe has as fast a port upwards
        "uplink_bytes_per_s": uplink or port,
        "uplink_latency_s": uplink_s,
    }


def _drawn_scene(about: str, rng: random.Random) -> Question:
    counts, sizes, links, about_bytes, needed = _SCENES[about]
    while True:
        across, within = rng.choice(counts), rng.choice(sizes)
        cluster = _drawn_cluster(across, within, links, rng)
        size_bytes = round(about_bytes * rng.uniform(0.7, 1.4))
        times_s: dict[bool, list[float]] = {True: [], False: []}
        for name, schedule in _known(cluster).items():
            seconds = _seconds(cluster, size_bytes, schedule)
            times_s[name in needed].append(seconds)
        if min(times_s[False]) > _CLEAR * min(times_s[True]):
            given = {"cluster": cluster, "size_bytes": size_bytes}
            return Question("all_reduce", given, about)


def _drawn_messages(cluster: Cluster, rng: random.Random) -> Schedule:
    """Draw steps in which ranks send to others, whatever becomes of it."""
    ranks, chunks = len(cluster["groups"]), rng.randint(4, 6)
    # a buffer has as many as the largest number says, named or not
    unnamed = rng.randrange(chunks - 1)
    named = [chunk for chunk in range(chunks) if chunk != unnamed]
    rows = []
    for step in range(rng.randint(3, 5)):
        receivers = rng.sample(range(ranks), ranks)
        for sender, receiver in enumerate(receivers):
            if sender != receiver and rng.random() < 0.7:
                sent = rng.sample(named, rng.randint(1, 3))
                rows += [[step, sender, receiver, chunk, 1] for chunk in sent]
    # all other groups send to the first: more enters it than leaves any
    first, *others = _members(cluster)
    pairs = [(group[0], rank) for group, rank in zip(others, first, strict=False)]
    pairs = pairs or [(first[0], first[1])]
    return rows + [[9, *pair, chunk, 1] for pair in pairs for chunk in named]


def questions(rng: random.Random) -> list[Question]:
    """Draw numbers of ranks, schedules to be timed, and clusters."""
    primes, powers = [3, 5, 7, 11, 13, 17], [2, 4, 8, 16]
    arguments = {
        "one rank": [1],
        "a power of two": rng.sample(powers, 2),
        "a prime number of ranks": rng.sample(primes, 2),
        "another number of ranks": [rng.choice([6, 9, 10, 12, 14, 15])],
    }
    drawn = [
        Question(function, {"ranks": ranks}, about)
        for function in ("ring", "tree", "halving_doubling")
        for about, numbers in arguments.items()
        for ranks in numbers
    ]
    for links, across in (("NVLink", 1), ("PCIe", 2), ("hosts", 2), ("hosts", 3)):
        cluster = _drawn_cluster(across, rng.randint(2, 4), links, rng)
        size_bytes = round(10 ** rng.uniform(5, 8))
        about = f"{links}, {across} groups" if across > 1 else f"{links}, one group"
        known = rng.choice(list(_known(cluster).values()))
        for schedule in (known, _drawn_messages(cluster, rng)):
            given = {"size_bytes": size_bytes, "schedule": schedule}
            drawn.append(Question("seconds", {"cluster": cluster, **given}, about))
    return drawn + [_drawn_scene(about, rng) for about in _SCENES]


def judge(question: Question, answer: Any) -> str:
    """Execute a schedule, or compare a time."""
    given = question.arguments
    if question.function == "seconds":
        right = _seconds(**given)
        if math.isclose(answer, right, rel_tol=_EXACT):
            return ""
        return f"Returned {1e6 * answer:,.6g} µs; expected {1e6 * right:,.6g} µs."
    cluster = given.get("cluster")
    ranks = len(cluster["groups"]) if cluster else given["ranks"]
    try:
        messages = _messages(ranks, answer)
        _execute(ranks, messages)
    except _BrokenRule as problem:
        return str(problem)
    if cluster is None:
        return _beyond(question.function, ranks, messages)
    return _too_slow(cluster, given["size_bytes"], answer)


def _beyond(function: str, ranks: int, messages: list[_Message]) -> str:
    """Say what an algorithm sends or takes beyond what it needs, or nothing."""
    bits = ranks.bit_length() - 1
    is_power = ranks == 1 << bits
    most_steps = {
        "ring": 2 * (ranks - 1),
        "tree": 2 * (ranks - 1).bit_length(),
        "halving_doubling": 2 * bits + (0 if is_power else 2),
    }[function]
    steps, chunks = _steps(messages), _chunks(messages)
    if len(steps) > most_steps:
        return f"It takes {len(steps)} steps; {most_steps} are enough."
    if function == "tree":
        return ""
    size = ranks if function == "ring" else 1 << bits
    most_share = 2 * (size - 1) / size + (0 if size == ranks else 1)
    ports = defaultdict(list)
    for step in steps:
        for (sender, receiver), count in step.items():
            ports["sends", sender].append(count)
            ports["receives", receiver].append(count)
    for (verb, rank), counts in ports.items():
        share = sum(counts) / chunks
        if share > most_share * (1 + _EXACT):
            return (
                f"Rank {rank} {verb} {share:.4g} times the buffer in {len(counts)} "
                f"messages; {most_share:.4g} times are enough."
            )
    pairs = {pair for step in steps for pair in step}
    if function == "ring" and len(pairs) > ranks:
        return "A rank of a ring sends to one neighbour only, and receives from one."
    return ""


def _too_slow(cluster: Cluster, size_bytes: int, schedule: Schedule) -> str:
    taken_s = _seconds(cluster, size_bytes, schedule)
    best_s, name = min(
        (_seconds(cluster, size_bytes, known), name)
        for name, known in _known(cluster).items()
    )
    if taken_s <= _SLOWER * best_s:
        return ""
    ranks = len(cluster["groups"])
    port_s = 2 * (ranks - 1) / ranks * size_bytes / cluster["port_bytes_per_s"]
    return (
        f"It takes {1e6 * taken_s:,.1f} µs, and {name} {1e6 * best_s:,.1f} µs; at most "
        f"{_SLOWER:g} times that is allowed. Ports need {1e6 * port_s:,.1f} µs for "
        "2 (p - 1) / p of the buffer, whatever the schedule."
    )
