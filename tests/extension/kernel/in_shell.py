"""Cells in a real IPython shell: run, and what they have shown."""

from typing import Any


def run(shell: Any, *lines: str, **options: Any) -> Any:
    return shell.run_cell("\n".join(lines), **options)


def shown(shell: Any, mime: str = "text/plain") -> str:
    return "\n".join(output["data"][mime] for output in shell.display_pub.outputs)
