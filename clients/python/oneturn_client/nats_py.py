"""A NATS connection by nats-py, whose event loop runs in a thread."""

import asyncio
import concurrent.futures
import importlib.util
import threading

from .transport import Message, NoRespondersError

CONNECT_TIMEOUT = 5
GRACE = 1  # beyond the library's own timeout


def installed():
    return importlib.util.find_spec("nats") is not None and importlib.util.find_spec("nats.aio") is not None


class NatsPyTransport:
    def __init__(self, host, port, *, secure=False, user=None, password=None, token=None, tls=None, inbox_prefix="_INBOX"):
        import nats

        self._errors, self._last = nats.errors, None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="oneturn-nats", daemon=True).start()
        options = {"user": user, "password": password, "token": token, "tls": tls}
        options = {key: value for key, value in options.items() if value is not None}
        url = "%s://%s:%d" % ("tls" if secure else "nats", "[%s]" % host if ":" in host else host, port)
        try:
            self._nc = self._wait(nats.connect(url, inbox_prefix=inbox_prefix, name="oneturn-client", max_reconnect_attempts=-1,
                                               connect_timeout=CONNECT_TIMEOUT, error_cb=self._on_error, **options), CONNECT_TIMEOUT)
        except BaseException as error:
            self._loop.call_soon_threadsafe(self._loop.stop)
            if isinstance(error, TimeoutError):  # the library tries again whatever the reason is
                raise ConnectionError("connect to %s: %s" % (url, self._last or error)) from error
            raise

    def request(self, subject, body, headers=None, timeout=5):
        """Publishes a message with a reply subject and returns the reply."""
        message = self._wait(self._nc.request(subject, body, timeout=timeout, headers=headers), timeout, subject)
        return Message(message.subject, dict(message.headers or {}), message.data)

    def subscribe(self, subject):
        return _Subscription(self, self._wait(self._nc.subscribe(subject), CONNECT_TIMEOUT, subject))

    def close(self):
        self._wait(self._nc.close(), CONNECT_TIMEOUT)
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _on_error(self, error):
        """Most errors reach the callers by their own calls, but not missing rights and failures of the first connection."""
        self._last = error

    def _wait(self, coroutine, timeout, subject=""):
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout + GRACE)
        except self._errors.NoRespondersError:
            raise NoRespondersError("nothing serves %s" % subject) from None
        except (asyncio.TimeoutError, concurrent.futures.TimeoutError, self._errors.TimeoutError):
            if subject and '"%s"' % subject in str(self._last):
                raise PermissionError(str(self._last)) from None
            raise TimeoutError("no reply on %s in %.1f s" % (subject, timeout)) from None
        except self._errors.MaxPayloadError as error:
            raise ValueError("publish to %s: %s" % (subject, error)) from error
        except self._errors.Error as error:
            raise ConnectionError("%s: %s" % (subject, error)) from error
        finally:
            future.cancel()


class _Subscription:
    def __init__(self, transport, subscription):
        self._transport, self._subscription = transport, subscription

    def next(self, timeout):
        """The next message, or None after the timeout in seconds."""
        try:
            message = self._transport._wait(self._subscription.next_msg(timeout=max(timeout, 0.001)), timeout)
        except TimeoutError:
            return None
        return Message(message.subject, dict(message.headers or {}), message.data, message.reply)

    def close(self):
        self._transport._wait(self._subscription.unsubscribe(), CONNECT_TIMEOUT)
