"""Fixtures for all tests."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.stub_nvml import StubNvml, build
from warpbook_monitors.nvml import gate as nvml


def pytest_configure() -> None:
    # in the background an interrupt is ignored, also by all that is started from there
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # a busy machine is slow, which is no fault of what is tested
    hypothesis.settings.register_profile(
        "busy",
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("busy")


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
