"""What the list of labs says of a machine."""

from __future__ import annotations

from warpbook_labs.course.overview import look_here, overview
from warpbook_labs.lab.languages.language import Here


def why(here: Here) -> dict[str, str]:
    labs, bad = overview(here, {})
    assert bad == ()
    return {lab.id: lab.why for lab in labs if not lab.can_check}


def test_each_language_names_what_brings_it() -> None:
    missing = why(Here(None, "NVRTC is missing.", triton=False, torch=False, gpus=1))
    assert missing["vector-add"] == "NVRTC is missing."
    assert "pip install 'warpbook-labs[triton]'" in missing["thread-and-block"]
    # plans need neither
    assert "occupancy" not in missing
    assert not why(Here("13.5", "", triton=True, torch=True, gpus=1))


def test_gpus_that_were_counted_before_are_taken_for_true() -> None:
    assert look_here(3).gpus == 3
