# SPDX-License-Identifier: GPL-2.0-only
"""A client of the agent's API, on its unix socket."""
import http.client
import json
import pathlib
import socket


class Client(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("weir", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(str(self.path))  # waits for its turn; with a timeout it would not
        self.sock.settimeout(self.timeout)

    def ask(self, method, target, body=None):
        """Status and document; the connection stays."""
        self.request(method, target, body if isinstance(body, (bytes, str, type(None))) else json.dumps(body))
        answer = self.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if answer.headers["Content-Type"] == "application/json" else text.decode()


class Api:
    """api("GET", "/v1/status"[, BODY]): status and document."""

    def __init__(self, name):
        self.path = pathlib.Path("/run/weir", name, "api")

    def __call__(self, method, target, body=None):
        client = Client(self.path)
        try:
            return client.ask(method, target, body)
        finally:
            client.close()
