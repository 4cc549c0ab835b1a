"""Detects that a tool blocks the loop of the main thread."""
import asyncio
import os
import sys
import threading
import time

PERIOD, LIMIT = 0.5, 1.0  # seconds between two checks; seconds after which a loop counts as blocked


class Watch:
    """Checks that the loop runs while calls are on it. blocked gets the task that blocks it, and where; free is
    called when it runs again."""

    def __init__(self, loop, tasks, blocked, free):
        self._loop, self._tasks, self._blocked, self._free = loop, tasks, blocked, free
        self._calls = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def wake(self):
        """A call begins."""
        if not self._calls.is_set():
            self._calls.set()

    def _run(self):
        while True:
            self._calls.wait()
            self._calls.clear()
            while self._loop.has(self._tasks.values()):
                beat = threading.Event()
                self._loop.call(beat.set)
                if not beat.wait(LIMIT):
                    self._blocked(self._loop.current(), place(threading.main_thread().ident))
                    beat.wait()
                    self._free()
                time.sleep(PERIOD)


def place(thread):
    """Where a thread is: the innermost frame of a file that is neither Python's nor a library's."""
    frame, innermost = sys._current_frames().get(thread), None
    library = os.path.dirname(asyncio.__file__)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(("<", os.path.dirname(library))) and os.sep + "site-packages" + os.sep not in file:
            return "%s:%d in %s" % (file, frame.f_lineno, frame.f_code.co_name)
        if innermost is None and not file.startswith("<"):
            innermost = "%s:%d in %s" % (file, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return innermost or "unknown"
