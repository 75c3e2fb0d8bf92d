"""Prometheus' own tool, on what we expose."""

import json
import subprocess
from pathlib import Path

from tests.programs import program

_BOARD = Path(__file__).parents[1] / "docs" / "grafana" / "warpbook.json"


def board_expressions() -> list[str]:
    """What our board asks, of all GPUs."""
    return [
        target["expr"].replace("$gpu", ".*")
        for panel in json.loads(_BOARD.read_text())["panels"]
        for target in panel.get("targets", ())
    ]


def check_metrics(page: str) -> None:
    """Have Prometheus' own checker read it, and say nothing."""
    checker = [program("promtool"), "check", "metrics"]
    done = subprocess.run(checker, input=page, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def assert_answered(expressions: list[str], page: str) -> None:
    """Have Prometheus evaluate them on what was scraped."""
    series = [
        {"series": line.rpartition(" ")[0], "values": f"{line.rpartition(' ')[2]}x120"}
        for line in page.splitlines()
        if not line.startswith("#")
    ]
    expectations = [
        {
            "expr": f"count({expression}) > bool 0",
            "eval_time": "2h",
            "exp_samples": [{"labels": "{}", "value": 1}],
        }
        for expression in expressions
    ]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": expectations}
    done = subprocess.run(
        [program("promtool"), "test", "rules", "/dev/stdin"],
        input=json.dumps({"evaluation_interval": "1m", "tests": [test]}),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
