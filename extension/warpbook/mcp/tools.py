"""All tools, in the order in which they are listed."""

from __future__ import annotations

from warpbook.mcp.gpu_tools import GPU_TOOLS
from warpbook.mcp.lab_tools import LAB_TOOLS
from warpbook.mcp.notebook_tools import NOTEBOOK_TOOLS
from warpbook.mcp.reference_tools import REFERENCE_TOOLS
from warpbook.mcp.report_tools import REPORT_TOOLS
from warpbook.mcp.tool import by_name

TOOLS = by_name(
    (*GPU_TOOLS, *REPORT_TOOLS, *REFERENCE_TOOLS, *NOTEBOOK_TOOLS, *LAB_TOOLS)
)
#: those for where no page can be asked
READING_TOOLS = by_name(tool for tool in TOOLS.values() if tool.is_reading)
