"""A NATS connection with the standard library alone: publish, subscribe, request, TLS, and reconnects."""

import json
import queue
import secrets
import selectors
import socket
import ssl
import threading
import time

from . import nats_protocol as protocol
from .transport import NoRespondersError

CONNECT_TIMEOUT = 5
WRITE_TIMEOUT = 5
LONGEST_PAUSE = 2  # between two attempts to reconnect
LONGEST_QUEUE = 1024  # messages of a subscription; later ones are dropped, as the server does with slow readers


class SocketTransport:
    def __init__(self, host, port, *, secure=False, user=None, password=None, token=None, tls=None, inbox_prefix="_INBOX"):
        self._address, self._secure, self._tls = (host, port), secure, tls
        given = {"user": user, "pass": password, "auth_token": token}
        self._options = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "name": "oneturn-client", "lang": "python",
                         "version": "0", "protocol": 1, **{key: value for key, value in given.items() if value is not None}}
        self._inbox = "%s.%s" % (inbox_prefix, secrets.token_hex(16))
        # The lock guards everything below, and each use of the socket: a TLS connection must not be read and written at the same time.
        self._lock = threading.Lock()
        self._connected = threading.Condition(self._lock)
        self._subscriptions, self._pending, self._last = {0: _Subscription(self, 0, self._inbox + ".*")}, {}, 0
        self._socket, self._max_payload, self._closed = None, 0, False
        parser = self._open()
        threading.Thread(target=self._run, args=(parser,), name="oneturn-nats", daemon=True).start()

    def request(self, subject, body, headers=None, timeout=5):
        """Publishes a message with a reply subject and returns the reply."""
        end = time.monotonic() + timeout
        reply, mailbox = "%s.%s" % (self._inbox, secrets.token_hex(8)), queue.SimpleQueue()
        data = protocol.publish(subject, reply, headers, body)
        with self._lock:
            self._wait_connected(subject, end)
            if len(body) > self._max_payload:
                raise ValueError("publish to %s: %d bytes, and the server takes %d" % (subject, len(body), self._max_payload))
            self._pending[reply] = (subject, mailbox)
            self._write(data)
        try:
            answer = mailbox.get(timeout=max(end - time.monotonic(), 0))
        except queue.Empty:
            raise TimeoutError("no reply on %s in %.1f s" % (subject, timeout)) from None
        finally:
            with self._lock:
                del self._pending[reply]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def subscribe(self, subject):
        protocol.check_subject(subject)
        with self._lock:
            self._last += 1
            subscription = self._subscriptions[self._last] = _Subscription(self, self._last, subject)
            self._write(subscription.line())
        return subscription

    def unsubscribe(self, subscription):
        with self._lock:
            if self._subscriptions.pop(subscription.number, None):
                self._write(b"UNSUB %d\r\n" % subscription.number)

    def close(self):
        with self._lock:
            self._closed = True
            self._drop()
            self._connected.notify_all()

    def _wait_connected(self, subject, end):
        while self._socket is None and not self._closed:
            if not self._connected.wait(max(end - time.monotonic(), 0)) and time.monotonic() >= end:
                raise ConnectionError("publish to %s: not connected to %s:%d" % (subject, *self._address))
        if self._closed:
            raise ConnectionError("publish to %s: the connection is closed" % subject)

    def _write(self, data):
        """Sends bytes. After a failure the reader connects again; subscriptions are then sent again."""
        try:
            if self._socket:
                self._socket.sendall(data)
        except OSError:
            self._drop()

    def _drop(self):
        try:
            if self._socket:
                self._socket.shutdown(socket.SHUT_RDWR)  # the reader sees the end and closes it
        except OSError:
            pass

    def _open(self):
        """Connects, subscribes, and returns the parser of what the server sends."""
        link = socket.create_connection(self._address, CONNECT_TIMEOUT)
        try:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            frames = _frames(link, protocol.Parser())
            info = json.loads(next(frames).text)
            if self._secure or info.get("tls_required"):
                link = (self._tls or ssl.create_default_context()).wrap_socket(link, server_hostname=self._address[0])
            parser = protocol.Parser()
            link.sendall(protocol.connect(self._options))
            for frame in _frames(link, parser):
                if frame.kind == "-ERR":
                    raise (PermissionError if "auth" in frame.text.lower() else ConnectionError)("%s:%d: %s" % (*self._address, frame.text))
                if frame.kind == "PONG":
                    break
            link.settimeout(WRITE_TIMEOUT)
            with self._lock:
                self._socket, self._max_payload = link, info.get("max_payload", 1 << 20)
                self._write(b"".join(subscription.line() for subscription in self._subscriptions.values()))
                self._connected.notify_all()
            return parser
        except BaseException:
            link.close()
            raise

    def _run(self, parser):
        pause = 0.05
        while True:
            if parser:
                try:
                    self._read(parser)
                except (OSError, ValueError, IndexError):
                    pass  # the connection is unusable: a new one
                self._lost()
            if self._closed:
                return
            try:
                parser, pause = self._open(), 0.05
            except (OSError, ValueError):
                parser, pause = None, min(pause * 2, LONGEST_PAUSE)
                time.sleep(pause)

    def _lost(self):
        with self._lock:
            self._socket.close()
            self._socket = None
            lost = list(self._pending.values())
        for subject, mailbox in lost:
            mailbox.put(ConnectionError("the connection was lost before a reply on %s" % subject))

    def _read(self, parser):
        """Handles what the server sends until the connection ends."""
        with selectors.DefaultSelector() as ready:
            ready.register(self._socket, selectors.EVENT_READ)
            while True:
                ready.select()
                with self._lock:
                    data = _receive(self._socket)
                if data == b"":
                    return
                for frame in parser.feed(data or b""):
                    self._handle(frame)

    def _handle(self, frame):
        if frame.kind == "PING":
            with self._lock:
                self._write(b"PONG\r\n")
        elif frame.kind == "-ERR":  # such as: 'Permissions Violation for Publish to "subject"'
            with self._lock:
                refused = [mailbox for subject, mailbox in self._pending.values() if '"%s"' % subject in frame.text]
                refused += [s.messages for s in self._subscriptions.values() if '"%s"' % s.subject in frame.text]
            for mailbox in refused:
                mailbox.put(PermissionError(frame.text))
        elif frame.kind == "MSG":
            with self._lock:
                subscription = self._subscriptions.get(frame.number)
                subject, mailbox = self._pending.get(frame.message.subject, ("", None))
            if mailbox:
                mailbox.put(NoRespondersError("nothing serves %s" % subject) if frame.status == "503" else frame.message)
            elif subscription and frame.number and subscription.messages.qsize() < LONGEST_QUEUE:
                subscription.messages.put(frame.message)


class _Subscription:
    def __init__(self, transport, number, subject):
        self.number, self.subject, self.messages = number, subject, queue.SimpleQueue()
        self._transport = transport

    def line(self):
        return b"SUB %s %d\r\n" % (self.subject.encode(), self.number)

    def next(self, timeout):
        """The next message, or None after the timeout in seconds."""
        try:
            message = self.messages.get(timeout=max(timeout, 0))
        except queue.Empty:
            return None
        if isinstance(message, Exception):
            raise message
        return message

    def close(self):
        self._transport.unsubscribe(self)


def _frames(link, parser):
    """The frames of a connection that is being opened."""
    while data := link.recv(65536):
        yield from parser.feed(data)
    raise ConnectionError("the server has closed the connection")


def _receive(link):
    """What has arrived: b"" at the end of the connection, None without a complete TLS record."""
    try:
        link.settimeout(0)
        data = link.recv(65536)
        while data and isinstance(link, ssl.SSLSocket) and link.pending():
            data += link.recv(link.pending())
        return data
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return None
    finally:
        link.settimeout(WRITE_TIMEOUT)
