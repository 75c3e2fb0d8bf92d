"""All sources of a course as a zip."""

from __future__ import annotations

from typing import BinaryIO

from sqlalchemy import Connection


def write_sources(connection: Connection, course_id: str, file: BinaryIO) -> int:
    """Write every source as `<lab>/<user name>/<number>-<submission>.<suffix>`.

    Returns:
        How many.

    Raises:
        NotFound: there is no such course.
    """
    raise NotImplementedError
