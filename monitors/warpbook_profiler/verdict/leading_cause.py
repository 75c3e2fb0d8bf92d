"""Which of a window's causes its verdict names, or that none stands out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import structs

from warpbook_monitors import units
from warpbook_monitors.verdict_kinds import Kind
from warpbook_profiler.model.figures import Finding
from warpbook_profiler.model.report_view import TimePart

#: the first cause is the verdict if it explains so much of the window ...
CLEAR_SHARE = 0.4
#: ... and the second explains no more than this part of it; else both are named
CLOSE_SHARE = 0.8
#: shares vary so much from run to run, as a part of themselves
_MARGIN = 0.06
#: what the host does, which counts together beside the GPU's causes; of those that are
#: close the first one here is named, as it is nearer to a change: who waits less has
#: less to launch again
HOST_KINDS: tuple[Kind, ...] = ("sync-bound", "launch-bound", "host-bound")
#: two of them are close if the smaller is this part of the larger
_CLOSE_OF_HOST = 0.6

#: in a cause's evidence, until the shares of all causes are known: its own
SHARE = "\0"
#: of a window without a leading cause
MOST_NAMED = 3

Shares = Mapping[Kind, float]


def with_rounded_shares(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Round the shares of all causes so that they add up, and write each as evidence.

    This is the one figure of a cause in every view.
    """
    exact = tuple(findings)
    shares = units.parts_of_one([finding.share for finding in exact])
    return tuple(
        structs.replace(
            finding,
            share=share,
            evidence=finding.evidence.replace(SHARE, units.share(share)),
        )
        for finding, share in zip(exact, shares, strict=True)
    )


def shares_by_kind(
    findings: Iterable[Finding], of_ns: int | None = None
) -> dict[Kind, float]:
    """Add up the shares of each kind, the largest first.

    Args:
        findings: the causes.
        of_ns: what shares are of, to judge by what was not rounded.
    """
    shares: dict[Kind, float] = {}
    for finding in findings:
        share = finding.share if of_ns is None else finding.explains_ns / max(of_ns, 1)
        shares[finding.kind] = shares.get(finding.kind, 0.0) + share
    return dict(sorted(shares.items(), key=lambda pair: -pair[1]))


def parts_by_label(
    findings: Sequence[Finding], ids: Sequence[str] = ()
) -> tuple[TimePart, ...]:
    """Add up the shares of causes that are called the same.

    Args:
        findings: the causes.
        ids: of each, for links.
    """
    parts: dict[str, TimePart] = {}
    for at, finding in enumerate(findings):
        part = parts.get(finding.label, TimePart(finding.kind, finding.label, 0.0))
        parts[finding.label] = structs.replace(
            part,
            ratio=part.ratio + finding.share,
            causes=(*part.causes, *ids[at : at + 1]),
        )
    return tuple(parts.values())


def leading(shares: Shares) -> Kind:
    """Name the cause that leads, or "mixed" where none does."""
    return _leading(shares, CLOSE_SHARE, CLEAR_SHARE)


def nearly_leading(shares: Shares) -> tuple[Kind, ...]:
    """Name what leads if the first share were a little larger, or smaller."""
    less, more = 1 - _MARGIN, 1 + _MARGIN
    ends = (
        _leading(shares, CLOSE_SHARE * more, CLEAR_SHARE * less, _CLOSE_OF_HOST * less),
        _leading(shares, CLOSE_SHARE * less, CLEAR_SHARE * more, _CLOSE_OF_HOST * more),
    )
    if "unknown" in ends:
        # that nothing is known of most of the time is no verdict to be near to
        return (leading(shares),)
    return tuple(dict.fromkeys(ends))


def first_of_host(kinds: Iterable[Kind]) -> Kind | None:
    """Choose among causes of the host; None where others are among them."""
    named = set(kinds)
    if not named or not named <= set(HOST_KINDS):
        return None
    return next(kind for kind in HOST_KINDS if kind in named)


def leads_alone(kind: Kind, shares: Shares) -> bool:
    """Tell whether a leading cause leads without other causes of the host."""
    of_host = {other: shares[other] for other in HOST_KINDS if other in shares}
    if kind not in of_host:
        return True
    first = max(of_host.values())
    close = [share for share in of_host.values() if share >= _CLOSE_OF_HOST * first]
    return len(close) == 1 and of_host[kind] == first >= CLEAR_SHARE


def in_words(shares: Shares) -> str:
    """Name the largest with their shares."""
    rounded = units.parts_of_one([*shares.values()])
    named = [*zip(shares, rounded, strict=True)][:MOST_NAMED]
    return ", ".join(f"{kind} {units.share(share)}" for kind, share in named)


def _leading(
    shares: Shares, close: float, clear: float, close_of_host: float = _CLOSE_OF_HOST
) -> Kind:
    together = _of_host_together(shares, close_of_host)
    first = max(together, key=lambda kind: together[kind], default=None)
    of_host = next((kind for kind in together if kind in HOST_KINDS), None)
    if first == "unknown" and of_host and together[of_host] > close * together[first]:
        first = of_host
    if first is None or together[first] < clear:
        return "mixed"
    # what nobody knows of the host's time is beside what is known of it
    rivals = [
        share
        for kind, share in together.items()
        if kind != first and not (first in HOST_KINDS and kind == "unknown")
    ]
    return "mixed" if max(rivals, default=0.0) > close * together[first] else first


def _of_host_together(shares: Shares, close: float) -> dict[Kind, float]:
    """Give the host's causes together to the one of them that is named."""
    of_host = {kind: shares[kind] for kind in HOST_KINDS if kind in shares}
    together = {kind: share for kind, share in shares.items() if kind not in of_host}
    if of_host:
        least = close * max(of_host.values())
        named = next(kind for kind, share in of_host.items() if share >= least)
        together[named] = sum(of_host.values())
    return together
