"""One folder, started for two courses one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from tests.hub.service.class_hub import COURSE, Visitor, class_hub

HERE = f"courses/{COURSE}"
NOT_GRADED = ("--cpu-slots", "0")


def test_a_start_for_another_course_leaves_this_ones_people(tmp_path: Path) -> None:
    with class_hub(tmp_path, *NOT_GRADED, instructors=("grace", "tom")) as hub:
        grace = Visitor(hub, "grace").log_in()
        everybody = grace.page(f"{HERE}/people").text
        tom = everybody.split("<code>tom</code>")[0].rsplit("/people/", 1)[1]
        grace.done(f"{HERE}/people/{tom.split(chr(34))[0]}/remove-staff")
    other = (*NOT_GRADED, "--course", "other")
    with class_hub(tmp_path, *other, instructors=("otto",)) as hub:
        assert Visitor(hub, "otto").log_in(is_staff=True).get("courses/other/queue").ok
    with class_hub(tmp_path, *NOT_GRADED, instructors=()) as hub:
        grace = Visitor(hub, "grace").log_in()
        otto = Visitor(hub, "otto").log_in(is_staff=True)
        tom = Visitor(hub, "tom").log_in()
        assert grace.page(f"{HERE}/people").ok
        assert otto.page(f"{HERE}/people").status_code == 404
        assert tom.page(f"{HERE}/people").status_code == 403
        assert "staff added" in grace.page(f"{HERE}/log").text
    said = (tmp_path / "command.log").read_text()
    assert "Added as instructor: otto" in said
    assert said.rstrip().count("Run by grace\n") == 1


def test_an_operator_of_a_demo_has_the_staffs_password(tmp_path: Path) -> None:
    with class_hub(tmp_path, *NOT_GRADED, operator="opal") as hub:
        with pytest.raises(requests.HTTPError):
            Visitor(hub, "opal").log_in()
        assert Visitor(hub, "opal").log_in(is_staff=True).page("hub").ok
        # no course is an operator's for that
        assert Visitor(hub, "grace").log_in().page("hub").status_code == 403
