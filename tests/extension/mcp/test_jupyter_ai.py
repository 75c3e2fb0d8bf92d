"""The tools as Jupyter AI finds them: by an entry point, if a person offers them."""

import inspect
import json
from configparser import ConfigParser
from importlib.metadata import EntryPoint

import pytest
from mcp.server.mcpserver import MCPServer

from tests.extension.server.test_ingest import report
from tests.programs import ROOT
from warpbook.mcp.tools import READING_TOOLS
from warpbook.server.assistants import jupyter_ai


@pytest.fixture(autouse=True)
def nothing_offered():
    jupyter_ai._sources.clear()
    yield
    jupyter_ai._sources.clear()


@pytest.fixture
def warpbook_config() -> dict:
    return {"jupyter_ai_tools": True}


def test_nothing_is_offered_unless_a_person_says_so() -> None:
    assert jupyter_ai.tools() == []


async def test_each_tool_is_a_function_that_answers(jp_serverapp, ingest) -> None:
    offered = jupyter_ai.tools()
    assert [spec.partition(":")[2] for spec in offered] == list(READING_TOOLS)
    await ingest("/v1/reports", report("r-1"))
    said = json.loads(await jupyter_ai.cells(notebook="a/b.ipynb"))
    assert said["rows"][0]["id"] == "«r-1»"
    assert "not a known model" in await jupyter_ai.memory(model="x", plan=None)
    for name in READING_TOOLS:
        function = getattr(jupyter_ai, name)
        assert function.__name__ == name and function.__doc__
        assert "tokens" in inspect.signature(function).parameters
    with pytest.raises(AttributeError):
        getattr(jupyter_ai, "rm")  # noqa: B009 - a name that is none


async def test_a_server_of_functions_takes_them(jp_serverapp) -> None:
    server = MCPServer("another")
    for spec in jupyter_ai.tools():
        server.add_tool(getattr(jupyter_ai, spec.partition(":")[2]))
    listed = {tool.name: tool for tool in await server.list_tools()}
    assert list(listed) == list(READING_TOOLS)
    assert "table" in listed["kernels"].input_schema["properties"]


def test_the_entry_point_is_where_the_package_looks() -> None:
    project = ConfigParser()
    project.read(ROOT / "setup.cfg")
    named = project["options.entry_points"]["jupyter_server_mcp.tools"].strip()
    point = EntryPoint(*named.split(" = "), "jupyter_server_mcp.tools")
    assert point.load() is jupyter_ai.tools
