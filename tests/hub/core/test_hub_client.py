"""What a gateway says is tried again; the course service's own refusal is final."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar, get_args

import msgspec
import pytest

from warpbook import ai_policy, class_hub, hub_client
from warpbook.ai_policy import AiPolicies, LabUse
from warpbook.class_hub import ClassHub, PublishedLab
from warpbook.hub_client import MOST_BYTES, HubAway, HubClient, HubRefused
from warpbook.hub_protocol import (
    ANSWER_MARK,
    GRADERS,
    KEEPER,
    GradedFacts,
    JobResult,
    LabAiPolicy,
    LeaseName,
    Orders,
    Problem,
    Receipt,
    Report,
    SubmissionReceipt,
    Work,
    WorkRequest,
)

Value = TypeVar("Value")
RECEIPT = SubmissionReceipt("s", "p", 1, 2, "d", 0, "x")
LAB = PublishedLab("course", "id", "lab", "Lab", True)
RESULT = JobResult(
    LeaseName("job", 1), GradedFacts("right", "passed", "", 1, 1), "lab", "source", 5
)


class Front:
    """An address where a gateway answers first, and then the service."""

    def __init__(self) -> None:
        self.faults: list[Callable[[Any], None]] = []
        self.answer: Any = None
        self.requests: list[tuple[str, bytes]] = []
        self.ended = threading.Event()
        front = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"] or 0)
                front.requests.append((self.path, self.rfile.read(length)))
                if front.faults:
                    front.faults.pop(0)(self)
                else:
                    own(200, front.answer)(self)

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/services/warpbook/"


@pytest.fixture
def front(monkeypatch: pytest.MonkeyPatch) -> Iterator[Front]:
    monkeypatch.setattr(hub_client, "_AGAIN_S", 0.01)
    begun = Front()
    thread = threading.Thread(target=begun.server.serve_forever, args=(0.01,))
    thread.start()
    yield begun
    begun.ended.set()
    begun.server.shutdown()
    thread.join()
    begun.server.server_close()


def send(handler: Any, status: int, body: bytes, *headers: tuple[str, str]) -> None:
    handler.send_response(status)
    for name, value in (("Content-Length", str(len(body))), *headers):
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def page(status: int) -> Callable[[Any], None]:
    """A gateway's page of HTML."""
    return lambda handler: send(handler, status, b"<h1>Not now</h1>")


def own(status: int, answer: Any) -> Callable[[Any], None]:
    body = msgspec.json.encode(answer)
    return lambda handler: send(handler, status, body, (ANSWER_MARK, "1"))


def redirect(handler: Any) -> None:
    send(handler, 302, b"", ("Location", "/elsewhere"))


def begin(handler: Any, header: tuple[str, str]) -> None:
    handler.send_response(200)
    for name, value in ((ANSWER_MARK, "1"), header):
        handler.send_header(name, value)
    handler.end_headers()


def cut(handler: Any) -> None:
    begin(handler, ("Content-Length", "1000"))
    handler.wfile.write(b'{"submission": ')


def cut_chunks(handler: Any) -> None:
    begin(handler, ("Transfer-Encoding", "chunked"))
    handler.wfile.write(b'5\r\n{"sub\r\n')


def oversized(handler: Any) -> None:
    try:
        send(handler, 200, b" " * (MOST_BYTES + 1), (ANSWER_MARK, "1"))
    except OSError:
        pass


def drop(handler: Any) -> None:
    handler.close_connection = True


FAULTS = {
    **{f"gateway {status}": page(status) for status in (403, 404, 429, 500, 502, 503)},
    "gateway 504": page(504),
    "a gateway's JSON": lambda handler: send(handler, 403, b'{"error": "no"}'),
    "redirect": redirect,
    "cut answer": cut,
    "cut chunks": cut_chunks,
    "oversized answer": oversized,
    "no answer": drop,
    "own 429": own(429, Problem("Too many at once.")),
    "own 500": own(500, Problem("Something failed here.")),
    "own 503": own(503, Problem("The disk is slow.")),
}


def hand_in(front: Front, wait_s: float) -> object:
    front.answer = RECEIPT
    words: list[str] = []
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(class_hub, "_WAIT_S", wait_s)
        hub = ClassHub(front.url, "token", say=words.append)
    receipt = hub.hand_in(LAB, "source")
    assert bool(words) == (len(front.requests) > 1)
    return receipt


def machine(part: str, path: str, kind: type[Any], message: Any, answer: Any) -> Any:
    """A grader or a keeper, which asks again at its next turn."""

    def ask(front: Front, wait_s: float) -> object:
        front.answer = answer
        client = HubClient(front.url, "token", part, wait_s)
        while True:
            try:
                return client.ask(path, kind, message)
            except HubAway:
                assert len(front.requests) < 50

    return ask


REPORT = Report("node", (), 0)
CLIENTS = {
    "hand-in": (hand_in, RECEIPT),
    "lease": (machine(GRADERS, "lease", Work, WorkRequest(1), Work()), Work()),
    "result": (
        machine(GRADERS, "result", Receipt, RESULT, Receipt(True)),
        Receipt(True),
    ),
    "keeper": (machine(KEEPER, "report", Orders, REPORT, Orders(())), Orders(())),
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_not_the_services_own_word_is_tried_again(
    front: Front, fault: str, client: str
) -> None:
    ask, answer = CLIENTS[client]
    front.faults = [FAULTS[fault]]
    assert ask(front, 30.0) == answer
    # the same request, to the byte: a hand-in is kept once
    assert len(front.requests) == 2
    assert front.requests[0] == front.requests[1]


@pytest.mark.parametrize("client", CLIENTS)
def test_who_does_not_answer_in_time_is_asked_again(front: Front, client: str) -> None:
    ask, answer = CLIENTS[client]

    def slow(handler: Any) -> None:
        front.ended.wait(60)

    def drips(handler: Any) -> None:
        """Each byte comes in time, and the answer never."""
        begin(handler, ("Content-Length", "99999"))
        while not front.ended.wait(0.05):
            try:
                handler.wfile.write(b" ")
            except OSError:
                return

    front.faults = [slow, drips]
    assert ask(front, 1.0) == answer
    assert len(set(front.requests)) == 1


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("status", [400, 403, 404, 409, 413])
def test_the_services_own_refusal_is_final(
    front: Front, status: int, client: str
) -> None:
    ask, _ = CLIENTS[client]
    front.faults = [own(status, Problem("Not this one."))]
    with pytest.raises(HubRefused, match="Not this one"):
        ask(front, 30.0)
    assert len(front.requests) == 1


def test_a_service_of_another_version_is_named(front: Front) -> None:
    front.faults = [own(200, {"receipt": 3})]
    with pytest.raises(HubRefused, match="of another version of warpbook"):
        hand_in(front, 30.0)


def test_who_waits_for_minutes_is_told_each_minute_that_it_goes_on(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_client, "_SAY_S", 0.0)
    front.faults = [page(503)] * 4
    front.answer = RECEIPT
    words: list[str] = []
    hub = ClassHub(front.url, "token", say=words.append)
    assert hub.hand_in(LAB, "source") == RECEIPT
    assert len(words) == 4 and len(set(front.requests)) == 1
    assert all("again, for up to 10 min" in one for one in words)


@pytest.fixture
def own_server(front: Front, monkeypatch: pytest.MonkeyPatch) -> Front:
    """A server that this hub has started."""
    monkeypatch.setenv(class_hub.URL, front.url)
    monkeypatch.setenv(class_hub.SERVER_TOKEN, "token")
    monkeypatch.setattr(class_hub, "_SILENT_S", 0.0)
    return front


def test_the_strictest_course_says_what_ai_assistants_may_do(own_server: Front) -> None:
    own_server.answer = [
        LabAiPolicy("monday", "vector-add", "on"),
        LabAiPolicy("tuesday", "vector-add", "checking"),
        LabAiPolicy("tuesday", "reduction", "off"),
        LabAiPolicy("monday", "reduction", "on"),
        LabAiPolicy("monday", "scan", "on"),
    ]
    policies = AiPolicies()
    allowed = {
        lab: [use for use in get_args(LabUse) if not policies.of(lab).refusal(use)]
        for lab in ("vector-add", "reduction", "scan", "of-no-course")
    }
    everything = list(get_args(LabUse))
    assert allowed == {
        "vector-add": ["see", "check"],
        "reduction": [],
        "scan": everything,
        "of-no-course": everything,
    }
    words = policies.of("vector-add").refusal("submit")
    assert "tuesday" in words and "for checking only" in words
    # one request for all of them
    assert [path for path, _ in own_server.requests] == [
        "/services/warpbook/api/v1/ai-policies"
    ]


def test_ai_assistants_are_off_while_the_hub_does_not_say(
    own_server: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_server.faults = [page(503), own(404, Problem("no such route"))]
    own_server.answer = []
    monkeypatch.setattr(ai_policy, "_TRY_AGAIN_S", 0.0)
    policies = AiPolicies()
    for _ in range(2):
        of_lab = policies.of("vector-add")
        assert (of_lab.policy, bool(of_lab.problem)) == ("off", True)
        assert "is not known" in of_lab.refusal("see")
    # it is asked again, and then no course has the lab
    assert policies.of("vector-add").refusal("submit") == ""


def test_no_hub_says_nothing_of_ai_assistants(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (class_hub.URL, class_hub.SERVER_TOKEN, class_hub.OWN_TOKEN):
        monkeypatch.delenv(name, raising=False)
    assert AiPolicies().of("vector-add").refusal("submit") == ""
    # nor does a hub whose address is none
    monkeypatch.setenv(class_hub.URL, "nowhere")
    monkeypatch.setenv(class_hub.OWN_TOKEN, "token")
    assert "no address" in AiPolicies().of("vector-add").refusal("see")
