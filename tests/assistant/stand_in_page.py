"""Does what JupyterLab's page does with one notebook, and allows all of it.

For machines without a browser. What is shown to a person, and how, only a browser tells
(`tests/e2e/test_consent.py`).
"""

from __future__ import annotations

import json
import socket
import threading
import uuid
from collections.abc import Mapping
from typing import Any

import requests
import websocket

MAGIC = "%%gpuprof"
_REPORT_MIME = "application/vnd.warpbook.report+json"
_TIMEOUT_S = 900


class Kernel:
    """A kernel of a server, by its WebSocket."""

    def __init__(self, url: str, token: str, kernel_id: str) -> None:
        self._session = uuid.uuid4().hex
        self._socket = websocket.create_connection(
            f"{url}/api/kernels/{kernel_id}/channels?session_id={self._session}"
            f"&token={token}".replace("http", "ws", 1),
            timeout=_TIMEOUT_S,
        )

    def run(self, code: str, cell: str | None = None) -> tuple[str | None, str]:
        """Run code; give the id of the report that it shows, and why it failed."""
        number = uuid.uuid4().hex
        header = {
            "msg_id": number,
            "msg_type": "execute_request",
            "session": self._session,
            "username": "",
            "version": "5.3",
            "date": "",
        }
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }
        message = {
            "channel": "shell",
            "header": header,
            "parent_header": {},
            "metadata": {} if cell is None else {"cellId": cell},
            "content": content,
            "buffers": [],
        }
        self._socket.send(json.dumps(message))
        report, failure = None, ""
        while True:
            said = json.loads(self._socket.recv())
            if said["parent_header"].get("msg_id") != number:
                continue
            what = said["content"]
            named = what.get("data", {}).get(_REPORT_MIME)
            report = report if named is None else named["id"]
            if said["msg_type"] == "error":
                failure = f"{what['ename']}: {what['evalue']}"
            elif said["msg_type"] == "status" and what["execution_state"] == "idle":
                return report, failure

    def close(self) -> None:
        self._socket.close()


class StandInPage:
    """One notebook, its cells by id, and a thread that answers what is asked."""

    def __init__(self, url: str, token: str, notebook: str) -> None:
        """Open a notebook's session; its kernel has warpbook loaded.

        Args:
            url: of the server, with its base and without a slash at its end.
            token: of the server.
            notebook: its path.
        """
        self.cells: dict[str, str] = {}
        with requests.Session() as session:
            session.trust_env = False
            answer = session.post(
                f"{url}/api/sessions",
                json={
                    "path": notebook,
                    "name": notebook,
                    "type": "notebook",
                    "kernel": {"name": "python3"},
                },
                headers={"Authorization": f"token {token}"},
                timeout=120,
            )
        assert answer.status_code == 201, answer.text
        self.kernel_id = answer.json()["kernel"]["id"]
        self.kernel = Kernel(url, token, self.kernel_id)
        self.run("%load_ext warpbook")
        self._reports: dict[str, dict[str, Any]] = {}
        self._stream = websocket.create_connection(
            f"{url}/warpbook/api/v1/stream?token={token}".replace("http", "ws", 1),
            timeout=None,
        )
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def run(self, code: str, cell: str | None = None) -> None:
        """Run code that must not fail; nothing may be asked meanwhile."""
        _, failure = self.kernel.run(code, cell)
        assert not failure, f"{failure} in\n{code}"

    def close(self) -> None:
        # a thread that reads is told
        self._stream.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)
        self._stream.close()
        self.kernel.close()

    def _serve(self) -> None:
        while True:
            try:
                message = json.loads(self._stream.recv())
            except (websocket.WebSocketException, OSError, ValueError):
                return
            if message["type"] == "cell_report":
                self._reports[message["id"]] = message
            elif message["type"] == "act_request":
                self._act(message)

    def _act(self, request: Mapping[str, Any]) -> None:
        cell = str(request["cell_id"]).removesuffix("-copy")
        if request["kernel_id"] != self.kernel_id or cell not in self.cells:
            return
        for state in ("shown", "allowed"):
            self._say(request, state=state)
        option = {
            "profile_cell": "",
            "try_change": f" --try {request['change']}",
            "apply_change": f" --apply {request['change']}",
        }[request["act"]]
        code = f"{MAGIC}{option}\n{self.cells[cell]}"
        report, failure = self.kernel.run(code, f"{cell}-copy")
        if report is None:
            self._say(request, state="failed", words=(failure or "no report")[:500])
            return
        while report not in self._reports:
            message = json.loads(self._stream.recv())
            if message["type"] == "cell_report":
                self._reports[message["id"]] = message
        is_applied, words = False, ""
        if request["act"] == "apply_change":
            is_applied, words = self._apply(cell, self._reports[report])
        self._say(
            request,
            state="done",
            report=report,
            is_applied=is_applied,
            words=words[:500],
        )

    def _apply(self, cell: str, report: Mapping[str, Any]) -> tuple[bool, str]:
        edited = report["profile"]["edited"] or {"code": "", "sentence": ""}
        trial = (report["profile"]["trials"] or [{}])[-1]
        difference = trial.get("difference") or {"differs": True, "compared": 0}
        is_better = (
            edited["code"]
            and trial["outcome"] == "faster"
            and not difference["differs"]
            and difference["compared"]
        )
        if not is_better:
            return False, f"Not applied. {edited['sentence']}"
        if edited["once"]:
            self.run(edited["once"])
        self.cells[cell] = edited["code"]
        return True, f"Applied. {edited['sentence']}"

    def _say(self, request: Mapping[str, Any], **answer: object) -> None:
        message = {"type": "act_answer", "id": request["id"], **answer}
        self._stream.send(json.dumps(message))
