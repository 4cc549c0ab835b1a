"""The event loops of the process: the one of its main thread, and a secondary one for when that thread is busy."""
import asyncio
import contextlib
import os
import threading


def new():
    """A loop that a tool cannot close, and whose callbacks end in the forked copy of a process."""
    loop = asyncio.new_event_loop()
    loop.close = lambda: None
    os.register_at_fork(after_in_child=loop.stop)  # other calls than the one that forks run in the parent
    return loop


class Main:
    """The loop of the main thread."""

    def __init__(self):
        self.loop = new()
        self.call, self.stop, self.run = self.loop.call_soon_threadsafe, self.loop.stop, self.loop.run_forever
        self.complete = self.loop.run_until_complete
        self.enter()

    def enter(self):
        """Makes it the current one, whatever a tool has set."""
        asyncio.set_event_loop(self.loop)

    def finish(self):
        """Cancels the tasks that are left, as asyncio.run does."""
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        if left:
            self.complete(asyncio.wait(left, timeout=1))

    def current(self):
        """The task that runs now, for another thread."""
        return asyncio.current_task(self.loop)

    def has(self, tasks):
        """Whether one of the tasks is its own."""
        return any(task.get_loop() is self.loop for task in list(tasks))


class Secondary:
    """A loop on a thread, made when it is first needed."""

    def __init__(self, stopped, failed):
        self._stopped, self._failed = stopped, failed
        self._lock, self._loop = threading.Lock(), None

    def call(self, function, *args):
        self._running().call_soon_threadsafe(function, *args)

    def complete(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._running()).result()

    def _running(self):
        with self._lock:
            if self._loop is None:
                self._loop = new()
                threading.Thread(target=self._spin, daemon=True).start()
            return self._loop

    def _spin(self):
        while True:
            try:
                self._loop.run_forever()
            except BaseException as error:  # SystemExit of a remaining task of a tool
                self._failed(error)
            self._stopped()


@contextlib.contextmanager
def of_thread():
    """Gives the thread a current loop, as the main thread has one."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        loop.close()
