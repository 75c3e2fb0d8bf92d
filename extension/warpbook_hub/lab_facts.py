"""What the hub's service asks of the labs: nothing that runs or grades anything.

Only this file and `grader/labs.py` import `warpbook_labs`.
"""

from __future__ import annotations

from hashlib import sha256

from warpbook_hub.errors import BadRequest
from warpbook_labs.errors import BadSource
from warpbook_labs.lab.sources import refuse_unfit


def check_source(source: str) -> None:
    """Refuse a source that no grader could take.

    Raises:
        BadRequest: it is too large, empty, or no text.
    """
    try:
        refuse_unfit(source)
    except BadSource as problem:
        raise BadRequest(str(problem)) from None


def digest_of(source: str) -> str:
    """Compute what tells a source from another: SHA-256 in UTF-8."""
    return sha256(source.encode()).hexdigest()
