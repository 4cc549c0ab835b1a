"""The host's main part: takes calls, runs them, answers."""
import asyncio
import collections
import contextvars
import faulthandler
import inspect
import logging
import os
import sys
import threading
import traceback

from _oneturn_host import tool_function
from _oneturn_host import api, context_variables, operations, encode, frames, load, event_loops, output, questions, restore_process, blocked_loop, build_limits, generators

END = 10  # seconds that the end of the process may take, if the worker does not end it before
MAX_MESSAGE = 4096  # characters of an exception that travel; the log has more


class BadArgs(Exception):
    """The arguments do not fit the function's signature or its hints."""


QUIET = (load.LoadError, encode.Unencodable, asyncio.CancelledError)  # errors whose traceback adds nothing


class Host:
    """Functions run on the main thread: async ones share its event loop, a sync one has the thread for itself while the
    loop stands still. While that one waits for an answer, or async ones do, others run elsewhere: sync functions on threads,
    async ones on a second loop. A thread reads frames, so that the end of the worker is seen whatever the tools do."""

    def __init__(self, config):
        self._max_frame = config["max_frame"]
        self._jobs = collections.deque()  # for the main thread, while the loop stands still
        self._queued = {}  # calls that the loop has not begun
        self._tasks = {}
        self._cancelled = set()
        self._interactions = {}  # of the calls that run
        self._main = None  # interaction of the sync call that has the main thread
        self._importing = 0  # the call for which the main thread imports a file
        self._ending = False
        self._state = restore_process.Keeper()
        self._loop, self._secondary = event_loops.Main(), event_loops.Secondary(frames.end_copy, report)
        for fd in (frames.READ_FD, frames.WRITE_FD):
            os.set_inheritable(fd, False)
        faulthandler.enable()
        limit(config["max_memory"])
        encode.max_items = config["max_frame"] // 2  # each takes two bytes of it
        output.install(config["mark"])
        logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
        logging.getLogger("asyncio").setLevel(logging.WARNING)
        api.install()
        questions.run_async = self._await
        self._loader = load.Loader(config, {})

    def serve(self):
        threading.Thread(target=self._read, daemon=True).start()
        self._watch = blocked_loop.Watch(self._loop, self._tasks, self._blocked, self._free)
        frames.write(b'{"hello":true}')
        while not self._ending:
            try:
                while self._jobs:
                    self._begin(self._jobs.popleft())
                self._loop.run()
            except BaseException as error:  # of a remaining task of a tool, or of a signal
                report(error)
            frames.end_copy()
        self._loop.finish()

    def _read(self):
        try:
            while True:
                request = frames.read()
                if request is None:
                    break
                if request["op"] == "cancel":
                    self._stop(request)
                elif request["op"] == "reply":
                    owner = self._interactions.get(request["id"])
                    if owner is not None:
                        owner.deliver(request)
                else:
                    self._take(request)
            if self._interactions:  # the worker has died
                os._exit(0)
            self._ending = True
            self._loop.call(self._loop.stop)
            threading.Event().wait(END)  # what was registered to run at exit runs meanwhile
        finally:
            os._exit(0)

    def _take(self, request):
        entry = self._loader.known(request["file"], request["function"])
        main, is_async = self._main, entry is not None and entry.is_async
        if main is not None and main.asked:  # the call on the main thread waits for an answer
            if is_async:
                self._secondary.call(self._start, request, entry)
                return
            if self._spawn(self._begin, request):
                return
        if is_async:
            self._queued[request["id"]] = request
            self._loop.call(self._start_queued, request, entry)
        else:
            self._jobs.append(request)
            self._loop.call(self._make_way)

    def _spawn(self, function, *args):
        """Runs a function on a separate thread. Reports whether one could be started."""
        try:
            threading.Thread(target=function, args=args, daemon=True).start()
            return True
        except RuntimeError:
            return False

    def _make_way(self):
        if self._jobs:
            self._loop.stop()

    def _begin(self, request):
        """A function that is sync or not yet imported, on the main thread or a separate one."""
        on_main = restore_process.on_main()
        try:
            self._check(request)
            if on_main:
                self._loop.enter()
                self._importing = request["id"]
            entry = self._loader.entry(request["file"], request["function"])
        except BaseException as error:
            self._fail(request, error)
            return
        finally:
            if on_main:
                self._importing = 0
        if entry.is_async:
            (self._loop if on_main else self._secondary).call(self._start, request, entry)
        elif on_main and self._loop.has(self._tasks.values()) and self._spawn(self._run_apart, request, entry):
            pass  # calls that wait for answers do not wait for this one
        elif on_main:
            contextvars.copy_context().run(self._run, request, entry, on_main)
        else:
            self._run_apart(request, entry)

    def _run_apart(self, request, entry):
        with event_loops.of_thread():
            contextvars.copy_context().run(self._run, request, entry, False)

    def _run(self, request, entry, on_main):
        self._state.begin()
        try:
            arguments, tracked = self._prepare(request, entry)
            owner = self._interactions[request["id"]]
            if on_main:
                self._main = owner
            check(entry, arguments)
            self._entered(request, entry.is_async)
            value = enter(entry.function, arguments)
            if inspect.isawaitable(value) or inspect.isasyncgen(value):  # a decorator hides that it is async
                self._entered(request, True)
                entry.is_async = True
                if on_main:
                    self._main = None
                (self._loop if self._main is None else self._secondary).call(self._continue, request, value, tracked)
                return
            if entry.runs_as(value):
                value = generators.run(value, owner)
            self._succeed(request, value, tracked)
        except BaseException as error:
            self._fail(request, error)
        finally:
            self._state.end()

    def _await(self, awaitable):
        """The value of an awaitable, for a thread on which no loop runs."""
        loop = self._loop if restore_process.on_main() else self._secondary
        value, error = loop.complete(wait(awaitable))
        if error is not None:
            raise error
        return value

    def _blocked(self, task, place):
        """The loop stands still: the calls that it has not begun go to another process."""
        owner = self._owner(task) if task is not None else self._importing
        frames.write(frames.dumps({"id": owner, "blocked": place}))
        for call in list(self._queued):
            if self._queued.pop(call, None) is not None:
                frames.write(b'{"id":%d,"back":true}' % call)

    def _owner(self, task):
        """The number of the call that a task belongs to, 0 if it cannot be known."""
        if hasattr(task, "get_context"):  # since Python 3.12
            return api.call_number(task.get_context())
        return next((call for call, other in list(self._tasks.items()) if other is task), 0)

    def _free(self):
        frames.write(b'{"free":true}')

    def _start_queued(self, request, entry):
        if self._queued.pop(request["id"], None) is not None:  # else another process has it
            self._start(request, entry)

    def _start(self, request, entry):
        self._add(request, self._run_async(request, entry))

    def _continue(self, request, value, tracked):
        self._add(request, self._end_async(request, value, tracked))

    def _add(self, request, coroutine):
        """Makes a call a task of the loop that runs here."""
        task = self._tasks[request["id"]] = asyncio.get_running_loop().create_task(coroutine)
        task.add_done_callback(lambda done: self._done(request, done))
        self._watch.wake()

    def _done(self, request, task):
        """A task that was cancelled before its first step has answered nothing."""
        if self._tasks.pop(request["id"], None) is task:
            self._fail(request, asyncio.CancelledError("the call was cancelled before it started"))

    async def _run_async(self, request, entry):
        try:
            arguments, tracked = self._prepare(request, entry)
            check(entry, arguments)
            self._entered(request, True)
            value = enter(entry.function, arguments)
        except BaseException as error:
            self._tasks.pop(request["id"], None)
            self._fail(request, error)
            return
        await self._end_async(request, value, tracked)

    async def _end_async(self, request, value, tracked):
        self._state.begin()
        try:
            self._check(request)
            if inspect.isawaitable(value):
                value = await value
            if inspect.isasyncgen(value):
                value = await generators.arun(value, self._interactions[request["id"]])
            self._succeed(request, value, tracked)
        except BaseException as error:
            self._fail(request, error)
        finally:
            self._tasks.pop(request["id"], None)
            self._state.end()

    def _entered(self, request, is_async):
        """The worker learns that a function runs before it does: what is not reported has not happened."""
        self._check(request)
        frames.write(b'{"id":%d,"entered":true,"async":%s}' % (request["id"], b"true" if is_async else b"false"))

    def _check(self, request):
        if request["id"] in self._cancelled:
            raise asyncio.CancelledError("the call was cancelled before it started")

    def _stop(self, request):
        """The worker abandons a call: what it waits for ends, and so does its task."""
        call_id = request["id"]
        self._cancelled.add(call_id)
        owner = self._interactions.get(call_id)
        if owner is not None:
            owner.end(operations.stopped(request))
        task = self._tasks.get(call_id)
        if task is not None:
            task.get_loop().call_soon_threadsafe(task.cancel)

    def _succeed(self, request, value, tracked):
        try:
            reply = {"id": request["id"], "value": encode.tree(value)}
            if tracked is not None:
                reply["set"], reply["remove"] = tracked.changes()
            body = frames.dumps(reply)
        except Exception as error:
            self._fail(request, error, returned=True)
            return
        if len(body) > self._max_frame:
            self._answer(request, {"code": "too_large", "type": "TooLarge", "returned": True, "message":
                         "the result takes %d bytes, over the limit of %d; store it and return a reference"
                         % (len(body), self._max_frame)})
            return
        self._end(request, body)

    def _fail(self, request, error, returned=False):
        failure = classify(error)
        failure["returned"] = returned
        if failure["code"] not in ("bad_args", "user_error") and not isinstance(error, QUIET) \
                and not (isinstance(error, operations.UIToolError) and error.quiet):
            report(error)
        self._answer(request, failure)

    def _answer(self, request, failure):
        self._end(request, frames.dumps({"id": request["id"], "error": failure}))

    def _end(self, request, body):
        frames.end_copy()
        output.end_lines(request["id"])
        self._cancelled.discard(request["id"])
        owner = self._interactions.pop(request["id"], None)
        if owner is not None:
            owner.end(operations.over)
            if owner is self._main:
                self._main = None
        frames.write(body)

    def _prepare(self, request, entry):
        """The arguments of the call and its context, which only functions that name it get."""
        api.enter(request["meta"], request["id"])
        owner = self._interactions[request["id"]] = operations.Interaction(request["id"], request["meta"], self._max_frame)
        operations.enter(owner)
        arguments = request["args"]
        if request.get("map"):
            arguments = entry.map(arguments, **request["map"])
        try:
            arguments = entry.build(arguments)
        except build_limits.Unbuildable as error:
            raise BadArgs("parameter %s" % error) from None
        offered = request.get("context")
        if not entry.takes_context(offered is not None, request.get("map")):
            return arguments, None
        tracked = context_variables.Tracked(offered or {})
        arguments[tool_function.CONTEXT] = tracked.container
        return arguments, tracked


def check(entry, arguments):
    """Raises what the call would, before the function counts as entered."""
    if not entry.fits(arguments):
        enter(entry.function, arguments)


def enter(function, arguments):
    try:
        return function(**arguments)
    except TypeError as error:
        if error.__traceback__.tb_next is None:  # no frame of the tool was entered
            raise BadArgs(str(error)) from None
        raise


async def wait(awaitable):
    """The value or the exception: one that is not an Exception would end the loop."""
    try:
        return await awaitable, None
    except BaseException as error:
        return None, error


def classify(error):
    """The wire form of an exception."""
    kind = type(error).__name__
    failure = {"code": "tool_error", "type": kind, "message": text(error) or kind}
    if type(error).__str__ is KeyError.__str__ and text(error):  # only the key
        failure["message"] = "%s: %s" % (kind, text(error))
    if isinstance(error, BadArgs):
        failure.update(code="bad_args", type="TypeError")
    elif isinstance(error, (api.UserError, ValueError)):
        failure["code"] = "user_error"
    elif isinstance(error, encode.TooLarge):
        failure["code"] = "too_large"
    elif isinstance(error, api.RetryableToolError):
        failure["retryable"] = True
    elif isinstance(error, operations.UIToolError):
        failure["code"] = str(error.code)  # the worker accepts only codes that it has sent
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
