"""The host's main part: takes calls, runs them, answers."""
import asyncio
import contextvars
import faulthandler
import inspect
import logging
import os
import queue
import sys
import threading
import traceback

from _oneturn_host import api, context, desk, encode, frames, load, output, people

MAX_MESSAGE = 4096  # characters of an exception that travel; the log has more


class BadArgs(Exception):
    """The arguments do not fit the function's signature; the message is Python's own."""


QUIET = (load.LoadError, encode.Unencodable, asyncio.CancelledError)  # errors whose traceback says nothing more


class Host:
    """Sync functions run one at a time on the main thread, async ones share a loop on a second thread,
    a third thread reads frames, so that the end of the worker is seen whatever the tools do."""

    def __init__(self, config):
        self._max_frame = config["max_frame"]
        self._jobs = queue.SimpleQueue()
        self._tasks = {}
        self._cancelled = set()
        self._desks = {}  # of the calls that run
        self._main = None  # desk of the call that has the main thread
        self._main_thread = threading.main_thread().ident
        self._loop = asyncio.new_event_loop()
        os.register_at_fork(after_in_child=self._loop.stop)  # the calls beside the one that forks run in the parent
        for fd in (frames.READ_FD, frames.WRITE_FD):
            os.set_inheritable(fd, False)
        faulthandler.enable()
        limit(config["max_memory"])
        encode.max_items = config["max_frame"] // 2  # each takes two bytes of it
        output.install()
        logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
        logging.getLogger("asyncio").setLevel(logging.WARNING)
        api.install()
        people.run_async = self._await
        self._loader = load.Loader(config["root"], config["folder"], config["workflow"], config["sources"])

    def serve(self):
        for target in (self._read, self._spin):
            threading.Thread(target=target, daemon=True).start()
        frames.write(b'{"hello":true}')
        while True:
            self._begin(self._jobs.get())

    def _spin(self):
        while True:
            try:
                self._loop.run_forever()
            except BaseException as error:  # SystemExit of a task that a tool left behind
                report(error)
            frames.end_copy()

    def _read(self):
        try:
            while True:
                request = frames.read()
                if request is None:
                    break
                if request["op"] == "cancel":
                    self._stop(request)
                    continue
                if request["op"] == "reply":
                    owner = self._desks.get(request["id"])
                    if owner is not None:
                        owner.deliver(request)
                    continue
                entry = self._loader.known(request["file"], request["function"])
                if entry is not None and entry.is_async:
                    self._loop.call_soon_threadsafe(self._start, request, entry)
                else:
                    self._hand(request)
        finally:
            os._exit(0)

    def _hand(self, request):
        """To the main thread. While the call there waits for a person, others get a thread of their own."""
        main = self._main
        if main is not None and main.asked:
            try:
                threading.Thread(target=self._begin, args=(request,), daemon=True).start()
                return
            except RuntimeError:  # no more threads: it waits for the main one
                pass
        self._jobs.put(request)

    def _begin(self, request):
        """A function that is sync or not yet imported."""
        try:
            self._check(request)
            entry = self._loader.entry(request["file"], request["function"])
        except BaseException as error:
            self._fail(request, error)
            return
        if entry.is_async:
            self._loop.call_soon_threadsafe(self._start, request, entry)
        else:
            contextvars.copy_context().run(self._run, request, entry)

    def _run(self, request, entry):
        try:
            arguments, tracked = self._prepare(request, entry)
            if threading.get_ident() == self._main_thread:
                self._main = self._desks[request["id"]]
            self._entered(request, entry)
            value = enter(entry.function, arguments)
            if inspect.isawaitable(value):
                value = self._await(value)
            self._succeed(request, value, tracked)
        except BaseException as error:
            self._fail(request, error)

    def _await(self, awaitable):
        """The value of an awaitable that runs on the loop, for a thread that is none of the loop's."""
        value, error = asyncio.run_coroutine_threadsafe(wait(awaitable), self._loop).result()
        if error is not None:
            raise error
        return value

    def _start(self, request, entry):
        task = self._loop.create_task(self._run_async(request, entry))
        self._tasks[request["id"]] = task

    async def _run_async(self, request, entry):
        try:
            arguments, tracked = self._prepare(request, entry)
            self._entered(request, entry)
            value = await enter(entry.function, arguments)
            self._succeed(request, value, tracked)
        except BaseException as error:
            self._fail(request, error)
        finally:
            self._tasks.pop(request["id"], None)

    def _entered(self, request, entry):
        """The worker learns that a function runs before it does: what it has not heard of, has not happened."""
        self._check(request)
        frames.write(b'{"id":%d,"entered":true,"async":%s}' % (request["id"], b"true" if entry.is_async else b"false"))

    def _check(self, request):
        if request["id"] in self._cancelled:
            raise asyncio.CancelledError("the call was cancelled before it started")

    def _stop(self, request):
        """The worker gives a call up: whatever it waits for ends, and so does its task."""
        call_id = request["id"]
        self._cancelled.add(call_id)
        owner = self._desks.get(call_id)
        if owner is not None:
            owner.end(desk.stopped(request))
        self._loop.call_soon_threadsafe(self._cancel, call_id)

    def _cancel(self, call_id):
        task = self._tasks.get(call_id)
        if task is not None:
            task.cancel()

    def _succeed(self, request, value, tracked):
        reply = {"id": request["id"], "value": encode.tree(value)}
        if tracked is not None:
            reply["set"], reply["remove"] = tracked.changes()
        body = frames.dumps(reply)
        if len(body) > self._max_frame:
            self._answer(request, {"code": "too_large", "type": "TooLarge", "message":
                         "the result takes %d bytes, over the limit of %d; store it and return a reference"
                         % (len(body), self._max_frame)})
            return
        self._end(request, body)

    def _fail(self, request, error):
        failure = classify(error)
        if failure["code"] not in ("bad_args", "user_error") and not isinstance(error, QUIET):
            report(error)
        self._answer(request, failure)

    def _answer(self, request, failure):
        self._end(request, frames.dumps({"id": request["id"], "error": failure}))

    def _end(self, request, body):
        frames.end_copy()
        output.end_lines()
        self._cancelled.discard(request["id"])
        owner = self._desks.pop(request["id"], None)
        if owner is not None:
            owner.end(desk.over)
            if owner is self._main:
                self._main = None
        frames.write(body)

    def _prepare(self, request, entry):
        """The arguments of the call and its context, which only functions that name it get."""
        api.enter(request["meta"], request["id"])
        owner = self._desks[request["id"]] = desk.Desk(request["id"], request["meta"], self._max_frame)
        desk.enter(owner)
        arguments = request["args"]
        if request.get("map"):
            arguments = entry.map(arguments, request["inject"])
        if not entry.takes_context:
            return arguments, None
        tracked = context.Tracked(request.get("context") or {})
        arguments[load.CONTEXT] = tracked.container
        return arguments, tracked


def enter(function, arguments):
    try:
        return function(**arguments)
    except TypeError as error:
        if error.__traceback__.tb_next is None:  # no frame of the tool was entered
            raise BadArgs(str(error)) from None
        raise


async def wait(awaitable):
    """The value or the exception: one that is no Exception would end the loop."""
    try:
        return await awaitable, None
    except BaseException as error:
        return None, error


def classify(error):
    """The wire form of an exception."""
    kind = type(error).__name__
    failure = {"code": "tool_error", "type": kind, "message": text(error) or kind}
    if type(error).__str__ is KeyError.__str__ and text(error):  # only the key, which says nothing
        failure["message"] = "%s: %s" % (kind, text(error))
    if isinstance(error, BadArgs):
        failure.update(code="bad_args", type="TypeError")
    elif isinstance(error, (api.UserError, ValueError)):
        failure["code"] = "user_error"
    elif isinstance(error, api.RetryableToolError):
        failure["retryable"] = True
    elif isinstance(error, desk.UIToolError):
        failure["code"] = str(error.code)  # the worker takes only what it has said itself
    elif isinstance(error, (SystemExit, KeyboardInterrupt, MemoryError)):
        failure["replace"] = True
        failure["message"] = "%s: %s" % (kind, text(error)) if text(error) else kind
    return failure


def text(error):
    try:
        return str(error)[:MAX_MESSAGE]
    except BaseException:
        return ""


def report(error):
    """The traceback goes to the log, without the host's own frames."""
    try:
        printed = traceback.TracebackException(type(error), error, error.__traceback__)
        mine = [frame for frame in printed.stack if not frame.filename.startswith("<oneturn host")]
        printed.stack = traceback.StackSummary.from_list(mine[-20:])
        for line in printed.format():
            print(line, end="", file=sys.stderr)
    except BaseException:
        try:
            print("a tool raised %s, which cannot be printed" % type(error).__name__, file=sys.stderr)
        except BaseException:  # a tool has closed the stream; the reply matters more
            pass


def limit(max_memory):
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if max_memory > 0:
        resource.setrlimit(resource.RLIMIT_AS, (max_memory, max_memory))
