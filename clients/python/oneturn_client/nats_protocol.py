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
        self._data = bytearray()

    def feed(self, data):
        """Adds bytes and returns the frames that are complete."""
        self._data += data
        frames, start = [], 0
        while (end := self._data.find(b"\r\n", start)) >= 0:
            kind, _, text = self._data[start:end].decode().partition(" ")
            kind, rest = kind.upper(), end + 2
            if kind in ("MSG", "HMSG"):
                words = text.split()  # subject number [reply] [size of the headers] size
                size, head = int(words[-1]), int(words[-2]) if kind == "HMSG" else 0
                if len(self._data) < rest + size + 2:
                    break
                status, headers = parse_headers(self._data[rest:rest + head].decode(errors="replace"))
                reply = words[2] if len(words) == (5 if kind == "HMSG" else 4) else ""
                message = Message(words[0], headers, bytes(self._data[rest + head:rest + size]), reply)
                frames.append(Frame("MSG", "", int(words[1]), status, message))
                start = rest + size + 2
            else:
                frames.append(Frame(kind, text.strip()))
                start = rest
        else:
            if len(self._data) - start > LONGEST_LINE:
                raise ConnectionError("the server does not speak NATS")
        del self._data[:start]
        return frames


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
