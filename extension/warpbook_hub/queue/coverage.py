"""What the graders that are there can grade, and with what."""

from __future__ import annotations

from collections import Counter

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, select

from warpbook.hub_protocol import Device, GradableLab
from warpbook_hub.database.tables import GRADERS
from warpbook_hub.queue.dispatch import LEASE_S

_decode_devices = msgspec.json.Decoder(tuple[Device, ...]).decode
_decode_labs = msgspec.json.Decoder(tuple[GradableLab, ...] | None).decode
#: reasons why a lab can't be graded
_MOST_PROBLEMS = 3


class LabCover(Struct, frozen=True):
    """Which graders can grade a lab; graders are those that are there now."""

    graders: int
    #: of the graders: have the lab, and can grade it
    able: int
    #: have not said what they can grade
    unknown: int
    cpu_slots: int
    #: by name, of those that can or have not said
    gpus: dict[str, int]
    #: digests of the versions that those have who can
    versions: tuple[str, ...]
    #: why others can't
    problems: tuple[str, ...]

    @property
    def is_hopeless(self) -> bool:
        """Whether whatever is handed in would be parked."""
        return self.graders > 0 and not self.able and not self.unknown

    def is_other(self, digest: str) -> bool:
        return bool(digest and self.versions) and digest not in self.versions


class Coverage:
    """The graders that are there, asked about labs."""

    def __init__(self, connection: Connection, now_ms: int) -> None:
        query = select(GRADERS).where(
            GRADERS.c.state == "active", GRADERS.c.seen_ms >= now_ms - LEASE_S * 1000
        )
        self._graders = [
            (
                row.cpu_slots,
                _decode_devices(row.devices),
                {lab.lab: lab for lab in _decode_labs(row.labs or "null") or ()}
                if row.labs
                else None,
            )
            for row in connection.execute(query)
        ]

    def of(self, lab: str) -> LabCover:
        """Return who can grade a lab.

        Args:
            lab: its id in the catalogue, or of the course's own.
        """
        able = unknown = cpu_slots = 0
        gpus: Counter[str] = Counter()
        versions: dict[str, None] = {}
        problems: dict[str, None] = {}
        for slots, devices, labs in self._graders:
            there = None if labs is None else labs.get(lab)
            if labs is None:
                unknown += 1
            elif there is None:
                problems["a grader does not have this lab"] = None
                continue
            elif there.problem:
                problems[there.problem] = None
                continue
            else:
                able += 1
                versions[there.digest] = None
            cpu_slots += slots
            gpus.update(device.name for device in devices)
        return LabCover(
            len(self._graders),
            able,
            unknown,
            cpu_slots,
            dict(gpus),
            tuple(versions),
            tuple(problems)[:_MOST_PROBLEMS],
        )
