"""As much of a NATS client as the service needs: https://docs.nats.io/reference/reference-protocols/nats-protocol"""

import collections
import json
import socket
import threading
import urllib.parse

Message = collections.namedtuple("Message", "subject reply headers body")


def connect(url):
    where = urllib.parse.urlparse(url)
    return Connection(socket.create_connection((where.hostname, where.port or 4222)))


class Connection:
    def __init__(self, conn):
        self.conn, self.reader = conn, conn.makefile("rb")
        self.lock, self.takers, self.pong = threading.Lock(), {}, threading.Event()
        self.reader.readline()  # INFO
        self.send("CONNECT %s\r\n" % json.dumps({"verbose": False, "headers": True, "no_responders": True, "name": "quotes"}))

    def send(self, line, payload=b""):
        with self.lock:
            self.conn.sendall(line.encode() + payload)

    def subscribe(self, subject, take, queue=""):
        number = str(len(self.takers) + 1)
        self.takers[number] = take
        self.send("SUB %s %s %s\r\n" % (subject, queue, number))

    def publish(self, subject, body, headers=None):
        head = b""
        if headers:
            lines = ["%s: %s" % (name, " ".join(str(value).split())) for name, value in headers.items()]  # a newline would end the value
            head = ("NATS/1.0\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode()
        self.send("HPUB %s %d %d\r\n" % (subject, len(head), len(head) + len(body)) if head else "PUB %s %d\r\n" % (subject, len(body)), head + body + b"\r\n")

    def flush(self):
        """Returns once the server has seen all that was sent. Before run."""
        self.send("PING\r\n")
        while not self.pong.is_set():
            self.take()

    def run(self):
        while self.take():
            pass

    def take(self):
        """Takes one message of the server; false at the end of the connection."""
        line = self.reader.readline().decode().split()
        if not line:
            return False
        if line[0] == "PING":
            self.send("PONG\r\n")
        elif line[0] == "PONG":
            self.pong.set()
        elif line[0] == "-ERR":
            raise ConnectionError(" ".join(line[1:]))
        elif line[0] in ("MSG", "HMSG"):  # MSG subject number [reply] size; HMSG subject number [reply] head size
            sizes = 2 if line[0] == "HMSG" else 1
            data = self.reader.read(int(line[-1]) + 2)[:-2]
            head = int(line[-2]) if sizes == 2 else 0
            pairs = [part.split(":", 1) for part in data[:head].decode().split("\r\n")[1:] if ":" in part]
            reply = line[3] if len(line) == 4 + sizes else ""
            self.takers[line[2]](Message(line[1], reply, {name: value.strip() for name, value in pairs}, data[head:]))
        return True
