"""What tools print: in whole lines, each with the call that prints it."""
import io
import sys
import threading

from _oneturn_host import api

MARK = "\x1e"  # begins a line of a call: the mark, the marker of the process, the number of the call, a space
MAX_OPEN = 1 << 16  # characters of a line that wait for its end


class Stream(io.TextIOWrapper):
    """Buffers a line until its end, so that output that others of the process write meanwhile is not mixed into it."""

    def __init__(self, stream, word):
        super().__init__(stream.buffer, encoding="utf-8", errors="backslashreplace", newline="\n", write_through=True)
        self._head = MARK + word
        self._open = {}  # what each call has begun to print
        self._lock = threading.RLock()

    def write(self, text):
        call_number = api.call_number()
        with self._lock:
            whole, end, rest = (self._open.pop(call_number, "") + text).rpartition("\n")
            if len(rest) > MAX_OPEN:
                whole, end, rest = whole + end + rest, "\n", ""
            if end:
                self._put(call_number, whole)
            if rest:
                self._open[call_number] = rest
        return len(text)

    def _put(self, call_number, lines):
        head = "%s%d " % (self._head, call_number) if call_number else ""
        lines = lines.replace(MARK, "\u241e")  # a text must not pass for a mark
        super().write("".join(head + line + "\n" for line in lines.split("\n")))

    def end_line(self, call_number):
        with self._lock:
            rest = self._open.pop(call_number, "")
            if rest:
                self._put(call_number, rest)

    def close(self):
        """All tools share the stream: one that closes it must not take it from the others."""


_streams = []


def install(word):
    sys.stdout, sys.stderr = Stream(sys.stdout, word), Stream(sys.stderr, word)
    _streams[:] = sys.stdout, sys.stderr


def end_lines(call_number):
    """No caller waits for the end of a line that a finished call has left open."""
    for stream in _streams:
        try:
            stream.end_line(call_number)
        except (OSError, ValueError):  # a tool has closed it
            pass
