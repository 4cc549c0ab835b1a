"""The operations of a running call that its worker does: questions, surfaces, progress and steps."""
import asyncio
import concurrent.futures
import contextvars
import threading

from _oneturn_host import frames

MAX_OPEN = 64  # operations of one call that may be open at the same time; the worker counts too
MAX_MESSAGE = 1000  # characters of a progress message

PARKED = "turn parked: waiting for an answer; this run ends"
CANCELLED = "the call was cancelled"


class UIToolError(Exception):
    """A question could not be asked, or a surface not shown."""

    code = "tool_error"
    quiet = False  # its traceback adds nothing


_TIMEOUTS = (TimeoutError,) if asyncio.TimeoutError is TimeoutError else (TimeoutError, asyncio.TimeoutError)


class UIToolTimeoutError(UIToolError, *_TIMEOUTS):
    """The time for an answer has passed."""

    code = "expired"


class Interaction:
    """The interaction of one call with its worker. Its operations are frames with a number; the worker answers each by that number."""

    def __init__(self, call_id, meta, max_frame):
        self.meta = meta
        self.asked = False  # it has asked a question
        self.steps = set()  # names of the steps that run or are done
        self.warned = False
        self._call_id = call_id
        self._max_frame = max_frame
        self._lock = threading.Lock()
        self._open = {}
        self._count = 0
        self._ended = None

    def check(self):
        """Raises if the call has ended."""
        if self._ended is not None:
            raise self._ended()

    def start(self, op, body):
        """Sends an operation; the future gets its result."""
        text = frames.dumps(body)
        if len(text) > self._max_frame:
            raise UIToolError("%s takes %d bytes, over the limit of %d" % (op, len(text), self._max_frame))
        if frames.is_copy():
            raise UIToolError("a forked process cannot reach the worker of the call: ask in the process that was called")
        future = concurrent.futures.Future()
        with self._lock:
            if self._ended is not None:
                raise self._ended()
            if len(self._open) >= MAX_OPEN:
                raise UIToolError("%d questions and other operations of this call are open already" % MAX_OPEN)
            self._count += 1
            self._open[self._count] = future
            self.asked = self.asked or op == "ask"
            future.number = self._count
            frames.write(b'{"id":%d,"n":%d,"op":"%s","body":%s}' % (self._call_id, self._count, op.encode(), text))
        return future

    async def wait(self, op, body):
        """Waits on the loop that runs here. A cancelled task ends only this wait, and continues when the worker has
        acknowledged that: what it does then is code after the question."""
        future = self.start(op, body)
        reply = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(reply)
        except asyncio.CancelledError:
            self._forget(future)
            if op == "ask":
                await asyncio.wait([reply])
            raise

    def block(self, op, body):
        """Waits in this thread."""
        return self.start(op, body).result()

    def _forget(self, future):
        with self._lock:
            if self._ended is None and future.number in self._open:  # the worker's reply ends it anyway
                frames.write(b'{"id":%d,"n":%d,"op":"forget"}' % (self._call_id, future.number))

    def deliver(self, reply):
        """The worker's reply to one operation."""
        with self._lock:
            future = self._open.pop(reply["n"], None)
        if future is not None:
            error = reply.get("error")
            settle(future, reply.get("value"), failed(error, reply.get("quiet", False)) if error else None)

    def end(self, make):
        """Every operation, open or later, raises what make returns."""
        with self._lock:
            if self._ended is None:
                self._ended = make
            left, self._open = list(self._open.values()), {}
        for future in left:
            settle(future, None, make())


def settle(future, value, error):
    try:
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)
    except concurrent.futures.InvalidStateError:  # its waiter has ended
        pass


def failed(error, quiet=False):
    kind = UIToolTimeoutError if error.get("code") == "expired" else UIToolError
    made = kind(error.get("message") or "it failed")
    made.code = error.get("code") or kind.code
    made.quiet = quiet
    return made


def stopped(request):
    """Makes the exception of a call whose run ends before its function does. It is not an Exception, so that
    `except Exception` does not take it for a failure."""
    text = PARKED if request.get("parked") else CANCELLED
    return lambda: asyncio.CancelledError(text)


def over():
    return UIToolError("the call has ended: its remaining threads and tasks cannot use its host")


_current = contextvars.ContextVar("oneturn_interaction")


def enter(made):
    _current.set(made)


def current(what):
    try:
        return _current.get()
    except LookupError:
        raise RuntimeError("%s works only inside a tool call and in the tasks it starts" % what) from None
