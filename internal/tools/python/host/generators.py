"""Tools that yield: what they yield is progress, what they return, else the last they yielded, is their result."""
import time
from collections.abc import Mapping

from _oneturn_host import operations, encode

PAUSE = 0.05  # seconds between two that are sent; a frontend shows no more
MESSAGES, PERCENTS = ("message", "status_message", "agent_message", "status"), ("percent", "progress_percent", "progress")


def run(generator, owner):
    """Runs a generator to its end, in this thread."""
    last, reports = None, ProgressReports(owner)
    try:
        while True:
            last = next(generator)
            body = reports.body(last)
            if body is not None:
                try:
                    owner.block("progress", body)
                except operations.UIToolError:
                    reports.mute()
    except StopIteration as end:
        return last if end.value is None else end.value
    finally:
        generator.close()


async def arun(generator, owner):
    """Runs an async generator to its end, on the loop that runs here."""
    last, reports = None, ProgressReports(owner)
    try:
        async for last in generator:
            body = reports.body(last)
            if body is not None:
                try:
                    await owner.wait("progress", body)
                except operations.UIToolError:
                    reports.mute()
        return last
    finally:
        await generator.aclose()


class ProgressReports:
    """Makes progress of what a tool yields."""

    def __init__(self, owner):
        self._owner, self._next = owner, 0.0

    def mute(self):
        """The caller has no host, and the tool runs anyway."""
        self._next = float("inf")

    def body(self, value):
        """The operation for a value, None if it is not passed on. Raises if the call has ended."""
        self._owner.check()
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + PAUSE
        return progress(value)


def progress(value):
    percent, message = -1, ""
    try:
        value = encode.tree(value)
    except encode.Unencodable:
        value = None
    if isinstance(value, Mapping):
        message = next((value[name] for name in MESSAGES if isinstance(value.get(name), str)), "")
        percent = next((value[name] for name in PERCENTS if type(value.get(name)) in (int, float)), -1)
        percent = min(max(percent, 0), 100) if percent >= 0 else -1
    elif isinstance(value, (str, int, float)):
        message = str(value)
    return {"percent": percent, "message": message[:operations.MAX_MESSAGE], "tool": "", "corr": ""}
