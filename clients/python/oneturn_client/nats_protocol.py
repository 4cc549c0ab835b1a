"""The NATS protocol: bytes from the server to frames, and messages to bytes. No I/O."""

import json
import typing

from .transport import Message

LONGEST_LINE = 1 << 20  # of the server: an INFO may be long


class Frame(typing.NamedTuple):
    kind: str  # MSG, PING, PONG, INFO, -ERR, +OK
    text: str = ""  # of INFO and -ERR
    number: int = 0  # of the subscription
    status: str = ""
    message: typing.Optional[Message] = None


class Parser:
    def __init__(self):
        self._data = b""

    def feed(self, data):
        """Adds bytes and yields the frames that are complete."""
        self._data += data
        while True:
            line, found, rest = self._data.partition(b"\r\n")
            if not found:
                if len(line) > LONGEST_LINE:
                    raise ConnectionError("the server does not speak NATS")
                return
            kind, _, text = line.decode().partition(" ")
            kind = kind.upper()
            if kind not in ("MSG", "HMSG"):
                self._data = rest
                yield Frame(kind, text.strip())
                continue
            words = text.split()  # subject number [reply] [size of the headers] size
            size, head = int(words[-1]), int(words[-2]) if kind == "HMSG" else 0
            if len(rest) < size + 2:
                return
            self._data = rest[size + 2:]
            status, headers = parse_headers(rest[:head].decode(errors="replace"))
            yield Frame("MSG", "", int(words[1]), status, Message(words[0], headers, rest[head:size]))


def parse_headers(text):
    """The status and the headers of a message."""
    first, _, rest = text.partition("\r\n")
    words = first.split()
    pairs = (line.partition(":") for line in rest.split("\r\n") if ":" in line)
    return (words[1] if len(words) > 1 else ""), {name.strip(): value.strip() for name, _, value in pairs}


def connect(options):
    return b"CONNECT %s\r\nPING\r\n" % json.dumps(options).encode()


def publish(subject, reply, headers, body):
    check_subject(subject)
    if not headers:
        return b"PUB %s %s %d\r\n%s\r\n" % (subject.encode(), reply.encode(), len(body), body)
    lines = ["%s: %s" % header for header in headers.items()]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("publish to %s: a header has a line break" % subject)
    head = ("NATS/1.0\r\n" + "".join(line + "\r\n" for line in lines) + "\r\n").encode()
    return b"HPUB %s %s %d %d\r\n%s%s\r\n" % (subject.encode(), reply.encode(), len(head), len(head) + len(body), head, body)


def check_subject(subject):
    if not subject or any(c <= " " or c == "\x7f" for c in subject):
        raise ValueError("not a subject: %r" % subject)
