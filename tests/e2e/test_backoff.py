"""A monitor that disturbs reads less often, and the dashboard says so."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tests.e2e.lab import TOUR, Lab
from tests.e2e.lab_page import LabPage


def test_the_dashboard_says_that_and_why_it_is_slower(
    page: LabPage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("slow")
    lab = Lab(folder)
    settings = folder / "home" / ".jupyter" / "jupyter_server_config.json"
    # any reading at all is more than this allows
    allowed = {"WarpbookApp": {"max_sampler_cpu_ratio": 0.001}}
    settings.write_text(json.dumps(allowed))
    with lab.serve() as url:
        page.open(url, TOUR)
        cost = page.dashboard.get_by_label("What watching costs")
        slower = "1.25 times a second instead of 10"
        page.bring_to_see(cost, cost.filter(has_text=slower))
        expect(cost).to_contain_text("of a CPU core")
        expect(cost).to_contain_text("1.25 Hz")
        page.wait_moving(page.dashboard)
