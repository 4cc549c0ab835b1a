"""Connections: what a Client needs of NATS. nats_py.py and nats_socket.py implement it.

A transport has request(subject, body, headers, timeout) -> Message, subscribe(subject) -> subscription with next(timeout)
and close(), and close(). Its methods may be called from any thread. They raise NoRespondersError, TimeoutError,
PermissionError, ConnectionError.
"""

import typing
import urllib.parse


class NoRespondersError(ConnectionError):
    """Nothing serves the subject."""


class Message(typing.NamedTuple):
    subject: str
    headers: dict  # of text to text
    body: bytes
    reply: str = ""  # where the sender expects a reply


def connect(url="nats://127.0.0.1:4222", *, user=None, password=None, token=None, tls=None, inbox_prefix="_INBOX", library=None):
    """Connects to a NATS server; user and password, or a token, may be in the URL. tls is an ssl.SSLContext; scheme tls, or a
    server that demands TLS, take the default one. library is "nats-py" or "socket"; by default nats-py where it is installed."""
    from . import nats_py, nats_socket

    if library is None:
        library = "nats-py" if nats_py.installed() else "socket"
    if library not in ("nats-py", "socket"):
        raise ValueError('connect: library is "nats-py" or "socket", not %r' % (library,))
    at = urllib.parse.urlparse(url if "://" in url else "nats://" + url)
    host, port = at.hostname or "127.0.0.1", at.port or 4222
    if at.username and user is None and token is None:
        first = urllib.parse.unquote(at.username)
        user, password, token = (None, None, first) if at.password is None else (first, urllib.parse.unquote(at.password), None)
    transport = nats_py.NatsPyTransport if library == "nats-py" else nats_socket.SocketTransport
    return transport(host, port, secure=at.scheme == "tls" or tls is not None, user=user, password=password, token=token, tls=tls,
                     inbox_prefix=inbox_prefix)
