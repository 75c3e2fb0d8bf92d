"""Fixtures for all tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stub_nvml import StubNvml, build
from warpbook_monitors import nvml


# before xdist reads the marks
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Where tests run side by side, keep those of the browser on one side.

    They share a browser and a lab, of which a second pair would be one too many.
    """
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        side = "browser" if "e2e" in item.path.parts else "others"
        item.add_marker(pytest.mark.xdist_group(side))


@pytest.fixture(scope="session")
def stub_nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the stub's libnvidia-ml.so.1."""
    return build(tmp_path_factory.mktemp("stub_nvml"))


@pytest.fixture
def make_stub_nvml(
    stub_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., StubNvml]]:
    """Make stub GPUs, `make_stub_nvml("h200", "a100")`, for this process and children.

    A child process started by other means than this one's environment needs `.env`.
    """

    def make(*gpus: str) -> StubNvml:
        stub = StubNvml(stub_nvml_library, tmp_path / "stub_nvml_state", *gpus)
        for name, value in stub.env.items():
            monkeypatch.setenv(name, value)
        return stub

    yield make
    nvml.shutdown()


@pytest.fixture
def stub_nvml(make_stub_nvml: Callable[..., StubNvml]) -> StubNvml:
    """One stub H200."""
    return make_stub_nvml("h200")
