"""As much of a NATS client as the service needs: https://docs.nats.io/reference/reference-protocols/nats-protocol"""

import collections
import itertools
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
        self.lock, self.takers, self.numbers, self.pong = threading.Lock(), {}, itertools.count(1), threading.Event()
        self.reader.readline()  # INFO
        self.send("CONNECT %s\r\n" % json.dumps({"verbose": False, "headers": True, "no_responders": True, "name": "quotes"}))

    def send(self, line, payload=b""):
        with self.lock:
            self.conn.sendall(line.encode() + payload)

    def subscribe(self, subject, take, queue=""):
        number = str(next(self.numbers))
        self.takers[number] = take
        self.send("SUB %s %s %s\r\n" % (subject, queue, number))
        return number

    def unsubscribe(self, number):
        self.send("UNSUB %s\r\n" % number)
        self.takers.pop(number)

    def publish(self, subject, body, headers=None, reply=""):
        head = b""
        if headers:
            lines = ["%s: %s" % (name, " ".join(str(value).split())) for name, value in headers.items()]  # a newline would end the value
            head = ("NATS/1.0\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode()
        if head:
            self.send("HPUB %s %s %d %d\r\n" % (subject, reply, len(head), len(head) + len(body)), head + body + b"\r\n")
        else:
            self.send("PUB %s %s %d\r\n" % (subject, reply, len(body)), body + b"\r\n")

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
            take = self.takers.get(line[2])
            if take:
                take(Message(line[1], reply, {name: value.strip() for name, value in pairs}, data[head:]))
        return True
