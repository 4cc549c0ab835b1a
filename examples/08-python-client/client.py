"""Publishes a turn, waits for its response, and reads the history of its chat, with the standard library alone."""

import json
import re
import secrets
import socket
import sys
import time
import urllib.parse

APP, POOL = "default", "default"
REREAD = 5  # seconds: a live copy may be lost, the journal has everything


def token(text):
    """An id as one token of a subject, for ids whose token has at most 64 characters."""
    return re.sub(rb"[^A-Za-z0-9_-]", lambda m: b"=%02X" % m[0][0], text.encode()).decode()


class Connection:
    """As much of a NATS client as this takes."""

    def __init__(self, url, inbox_prefix="_INBOX"):
        where = urllib.parse.urlparse(url)
        self.socket = socket.create_connection((where.hostname, where.port or 4222))
        self.data, self.waiting, self.inbox = b"", [], "%s.%s" % (inbox_prefix, secrets.token_hex(16))
        self.line(time.monotonic() + REREAD)  # INFO
        options = {"verbose": False, "headers": True, "no_responders": True, "name": "python-client"}
        if where.username:
            options.update({"user": urllib.parse.unquote(where.username), "pass": urllib.parse.unquote(where.password or "")})
        self.send("CONNECT %s\r\n" % json.dumps(options))
        self.subscribe(self.inbox + ".*")

    def send(self, line, body=b""):
        self.socket.sendall(line.encode() + body)

    def subscribe(self, subject):
        self.send("SUB %s 1\r\n" % subject)

    def receive(self, enough, end):
        while not enough():
            self.socket.settimeout(max(end - time.monotonic(), 0.001))
            piece = self.socket.recv(65536)
            if not piece:
                raise ConnectionError("the server has closed the connection")
            self.data += piece

    def line(self, end):
        self.receive(lambda: b"\r\n" in self.data, end)
        line, _, self.data = self.data.partition(b"\r\n")
        return line.decode().split()

    def message(self, end):
        """The next message as subject, headers and body; TimeoutError at the end, a time of time.monotonic()."""
        while True:
            words = self.line(end)
            if words[0] == "PING":
                self.send("PONG\r\n")
            elif words[0] == "-ERR":
                raise ConnectionError(" ".join(words[1:]))
            elif words[0] in ("MSG", "HMSG"):  # MSG subject number [reply] size; HMSG … head size
                size, head = int(words[-1]), int(words[-2]) if words[0] == "HMSG" else 0
                self.receive(lambda: len(self.data) >= size + 2, time.monotonic() + REREAD)
                body, self.data = self.data[:size], self.data[size + 2:]
                return words[1], body[:head].decode(), body[head:]

    def request(self, subject, value):
        reply, body = "%s.%s" % (self.inbox, secrets.token_hex(8)), json.dumps(value).encode()
        self.send("PUB %s %s %d\r\n" % (subject, reply, len(body)), body + b"\r\n")
        end = time.monotonic() + REREAD
        while True:
            message = self.message(end)
            if message[0] == reply:
                break
            self.waiting.append(message)  # a live copy
        if "503" in message[1].split("\r\n")[0]:
            raise ConnectionError("no response on %s" % subject)
        failed = re.search("Nats-Service-Error: (.*)", message[1])
        answer = json.loads(message[2] or b"{}")
        if failed or "error" in answer:
            raise RuntimeError(failed[1].strip() if failed else answer["error"]["description"])
        return answer

    def pages(self, verb, query):
        """The events of a turn or chat, from the journal."""
        while query.get("from", 0) is not None:
            page = self.request("oneturn.api.%s.%s" % (APP, verb), query)
            yield from page["records"]
            query = dict(query, **{"from": page.get("next")})


def response(connection, chat, turn, timeout=90):
    """Waits for the one response of a turn."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        for record in connection.pages("turn", {"chat_id": chat, "turn": turn}):
            if record["kind"] == "tool_response":
                return record["event"]["data"]
        try:  # any live copy of the turn is a reason to read again
            connection.waiting.pop() if connection.waiting else connection.message(time.monotonic() + REREAD)
        except TimeoutError:
            pass
    raise TimeoutError("turn %s of chat %s has no response yet" % (turn, chat))


def main(url, chat, turn, name):
    connection = Connection(url)
    connection.subscribe("oneturn.events.%s.%s.%s.>" % (APP, token(chat), token("0-" + turn)))  # first, so that nothing falls between
    stored = connection.request("oneturn.in.%s.structured_output_ready.%s.Hello.%s" % (POOL, APP, token(chat)), {
        "kind": "structured_output_ready", "agent": "Greeter", "model_name": "Greeting", "auto_tool_mode": True,
        "turn_idempotency_key": turn, "structured_data": {"name": name, "language": "fr"},
        "context": {"app_id": APP, "chat_id": chat, "workflow_name": "Hello"},
    })
    print("stored as message %d of %s" % (stored["seq"], stored["stream"]))
    r = response(connection, chat, turn)
    print("%s: %s" % (r["status"], r["content"]))
    for record in connection.pages("history", {"chat_id": chat}):
        print("history: %s of %s" % (record["event"]["type"], record["event"]["data"]["turn"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
