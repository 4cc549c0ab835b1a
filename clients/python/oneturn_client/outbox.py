"""A bounded queue of messages and the thread that publishes them in order, for hosts that must not wait or fail."""

import atexit
import collections
import logging
import threading
import time

log = logging.getLogger("oneturn")

LONGEST_PAUSE = 5  # seconds between two attempts
LOG_EVERY = 10  # seconds between two lines about the same trouble


class Outbox:
    """put never waits and never raises. What cannot be published is counted, logged, and passed to on_lost(message, reason)."""

    def __init__(self, client, *, limit, limit_bytes, on_lost=None):
        """client is a Client, or a function that opens one, which is then closed here."""
        self._open, self._client, self._on_lost = (client, None, on_lost) if callable(client) else (None, client, on_lost)
        self._limit, self._limit_bytes = limit, limit_bytes
        self._changed = threading.Condition()
        self._queue, self._bytes, self._closed = collections.deque(), 0, False
        self.sent, self.lost, self._logged = 0, 0, {}
        self._thread = threading.Thread(target=self._run, name="oneturn-outbox", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def __len__(self):
        return len(self._queue)

    def put(self, message):
        """Adds a message: an object with body and publish(client)."""
        size = len(message.body)
        with self._changed:
            reason = None
            if self._closed:
                reason = "the attachment is closed"
            elif len(self._queue) >= self._limit or self._bytes + size > self._limit_bytes:
                reason = "the queue is full (%d messages, %d bytes): is the NATS server reachable?" % (len(self._queue), self._bytes)
            else:
                self._queue.append(message)
                self._bytes += size
                self._changed.notify_all()
        if reason:
            self.lose(message, reason)

    def lose(self, message, reason):
        self.lost += 1
        self._report("lost", logging.ERROR, "oneturn: a message is lost, %d by now: %s: %s" % (self.lost, message, reason))
        if self._on_lost:
            try:
                self._on_lost(message, reason)
            except Exception:
                log.exception("oneturn: on_lost has failed")

    def flush(self, timeout):
        """Waits until all is published, and returns whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._queue, timeout)

    def close(self, timeout=5):
        """Publishes what waits, for the timeout in seconds; the rest is lost."""
        atexit.unregister(self.close)
        if not self._closed:
            self.flush(timeout)
        with self._changed:
            self._closed = True
            left = list(self._queue)
            self._queue.clear()
            self._changed.notify_all()
        for message in left:
            self.lose(message, "the process ends, and it is not published yet")

    def _run(self):
        pause = 0.1
        while message := self._next():
            try:
                if self._client is None:
                    self._client = self._open()
            except Exception as error:
                pause = self._wait(pause, error)
                continue
            try:
                message.publish(self._client)
            except (ValueError, TypeError, PermissionError) as error:  # of this message: others can be published
                self._done(message)
                self.lose(message, str(error))
            except Exception as error:
                pause = self._wait(pause, error)
            else:
                self.sent, pause = self.sent + 1, 0.1
                self._done(message)
        if self._open and self._client:
            self._client.close()

    def _wait(self, pause, error):
        """Waits before the next attempt, and returns the next pause."""
        self._report("failed", logging.WARNING, "oneturn: not published yet, %d messages wait: %s" % (len(self._queue), error))
        with self._changed:
            self._changed.wait_for(lambda: self._closed, pause)
        return min(2 * pause, LONGEST_PAUSE)

    def _next(self):
        """The oldest message, which stays in the queue; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            return self._queue[0] if self._queue else None

    def _done(self, message):
        with self._changed:
            if self._queue and self._queue[0] is message:
                self._queue.popleft()
                self._bytes -= len(message.body)
            self._changed.notify_all()

    def _report(self, what, level, text):
        now = time.monotonic()
        if now - self._logged.get(what, -LOG_EVERY) >= LOG_EVERY:
            self._logged[what] = now
            log.log(level, text)
