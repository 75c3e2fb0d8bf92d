"""Which branches decide whether a place in a program is reached.

By immediate post-dominators (Cooper, Harvey, Kennedy: A Simple, Fast Dominance
Algorithm, 2001) and control dependence (Ferrante, Ottenstein, Warren 1987).
"""

from __future__ import annotations

from collections.abc import Sequence


def deciding_branches(successors: Sequence[Sequence[int]]) -> list[set[int]] | None:
    """Give for each node the nodes on whose choice it depends, directly or not.

    Args:
        successors: by node, which may come next; the number of nodes stands for the
            end.

    Returns:
        By node; None if some node can't reach the end.
    """
    parents = _post_dominators(successors)
    if parents is None:
        return None
    deciding: list[set[int]] = [set() for _ in successors]
    for branch, nodes in enumerate(successors):
        if len(set(nodes)) < 2:
            continue
        for first in nodes:
            node = first
            while node != parents[branch]:
                deciding[node].add(branch)
                node = parents[node]
    return [_with_deciding(direct, deciding) for direct in deciding]


def _with_deciding(direct: set[int], deciding: list[set[int]]) -> set[int]:
    """Add what decides about the branches themselves."""
    known, left = set(direct), list(direct)
    while left:
        new = deciding[left.pop()] - known
        known |= new
        left += new
    return known


def _post_dominators(successors: Sequence[Sequence[int]]) -> list[int] | None:
    """Give for each node the next one that every way from it to the end takes."""
    end = len(successors)
    order = _from_end(successors)
    if len(order) <= end:
        return None
    rank = {node: position for position, node in enumerate(order)}
    unknown = -1
    parents = [unknown] * (end + 1)
    parents[end] = end
    has_changed = True
    while has_changed:
        has_changed = False
        for node in reversed(order[:-1]):
            parent = unknown
            for following in successors[node]:
                if parents[following] == unknown:
                    continue
                if parent == unknown:
                    parent = following
                    continue
                other = following
                while parent != other:
                    if rank[parent] < rank[other]:
                        parent = parents[parent]
                    else:
                        other = parents[other]
            if parent != parents[node]:
                parents[node] = parent
                has_changed = True
    return parents


def _from_end(successors: Sequence[Sequence[int]]) -> list[int]:
    """Give the nodes that reach the end, in postorder of the reversed graph."""
    end = len(successors)
    predecessors: list[list[int]] = [[] for _ in range(end + 1)]
    for node, nodes in enumerate(successors):
        for following in nodes:
            predecessors[following].append(node)
    order: list[int] = []
    seen = {end}
    stack = [(end, iter(predecessors[end]))]
    while stack:
        node, left = stack[-1]
        before = next((other for other in left if other not in seen), None)
        if before is None:
            order.append(node)
            stack.pop()
        else:
            seen.add(before)
            stack.append((before, iter(predecessors[before])))
    return order
