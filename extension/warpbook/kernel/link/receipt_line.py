"""The one line under a cell, as text and as HTML."""

from __future__ import annotations

from warpbook.kernel.link.late_output import Bundle, one_line
from warpbook.protocol import CellRun, Receipt
from warpbook_monitors import units


def wall_line(run: CellRun) -> Bundle:
    """Say what the kernel knows by itself, until the receipt comes."""
    return one_line(units.duration(run.ended_ms - run.started_ms))


def no_receipt(run: CellRun, why: str) -> Bundle:
    """Say why there will be none; the cells after this one have no line."""
    wall = units.duration(run.ended_ms - run.started_ms)
    return one_line(f"{wall} · No receipts for now. {why}")


def receipt_line(receipt: Receipt, caution: str = "") -> Bundle:
    """Show the receipt as the server has worded it, and what is wrong with it."""
    view = receipt.view
    line = receipt.line if view is None else view.cell_line
    return one_line(f"{line} · {caution}" if caution else line)
