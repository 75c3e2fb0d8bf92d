"""CUDA graphs: `torch.cuda.CUDAGraph` and `torch.cuda.graph`."""

from __future__ import annotations

from typing import Any

from warpbook_labs.simulated.recording.recorder import Graph, current
from warpbook_labs.simulated.recording.refusing import Told
from warpbook_labs.simulated.recording.streams import Stream


class CUDAGraph(Told):
    """Work that is captured once and launched as a whole."""

    _spoken = "torch.cuda.CUDAGraph"
    _graph: Graph | None = None
    _is_whole = False

    def __init__(self, keep_graph: bool = False) -> None:
        """Begin with nothing captured."""
        del keep_graph

    def __del__(self) -> None:
        """Say that nobody holds it any more."""
        self.reset()

    def capture_begin(
        self, pool: object = None, capture_error_mode: str = "global"
    ) -> None:
        """What the current stream is given from now on is kept."""
        del pool, capture_error_mode
        recorder = current()
        if self._graph is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a "
                "new graph, create a new instance or call reset()."
            )
        graph = Graph(recorder)
        recorder.begin_capture(graph, recorder.stream)
        self._graph = graph

    def capture_end(self) -> None:
        """The graph is whole."""
        if self._graph is None or self._is_whole:
            raise RuntimeError("capture_end() needs a capture_begin()")
        current().end_capture(self._graph)
        self._is_whole = True

    def replay(self) -> None:
        """Launch it on the current stream."""
        if self._graph is None or not self._is_whole:
            raise RuntimeError(
                "Called CUDAGraph::replay without a preceding successful capture."
            )
        current().replay(self._graph)

    def reset(self) -> None:
        """Forget what was captured."""
        if self._graph is not None and self._is_whole:
            self._graph.recorder.release_graph(self._graph)
        self._graph, self._is_whole = None, False

    def pool(self) -> tuple[int, int]:
        """What stands for its memory."""
        return (0, 0 if self._graph is None else self._graph.number)


class graph:
    """Capture what is asked meanwhile, on a stream beside the default one."""

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: object = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        """Say what is captured, and on which stream."""
        del pool, capture_error_mode
        self._graph = cuda_graph
        self._stream = stream

    def __enter__(self) -> None:
        """Begin the capture."""
        recorder = current()
        # PyTorch waits for all that was asked before, and so do we
        recorder.synchronize_device()
        if self._stream is None:
            if recorder.capture_stream is None:
                recorder.capture_stream = Stream().stream_id
            self._stream = Stream(stream_id=recorder.capture_stream)
        self._stream.__enter__()
        try:
            self._graph.capture_begin()
        except BaseException:
            self._stream.__exit__()
            raise

    def __exit__(self, *problem: Any) -> None:
        """End it."""
        assert self._stream is not None
        try:
            self._graph.capture_end()
        finally:
            self._stream.__exit__(*problem)


def is_current_stream_capturing() -> bool:
    """Whether what is asked now is kept for a graph."""
    recorder = current()
    return recorder.stream in recorder.capturing
