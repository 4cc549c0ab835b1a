"""What tools print: in whole lines, with the call that prints them."""
import io
import sys

from _oneturn_host import api

MARK = "\x1e"  # begins the line that says whose lines follow


class Stream(io.TextIOWrapper):
    def __init__(self, stream):
        super().__init__(stream.buffer, encoding="utf-8", errors="backslashreplace", newline="\n", write_through=True)
        self._speaker = 0
        self._unended = False

    def write(self, text):
        speaker = api.speaker()
        if speaker != self._speaker:
            self.end_line()
            self._speaker = speaker
            super().write("%s%d\n" % (MARK, speaker))
        if text:
            self._unended = not text.endswith("\n")
        return super().write(text)

    def end_line(self):
        if self._unended:
            self._unended = False
            super().write("\n")

    def close(self):
        """All tools share the stream: one that closes it must not take it from the others."""


_streams = []


def install():
    sys.stdout, sys.stderr = Stream(sys.stdout), Stream(sys.stderr)
    _streams[:] = sys.stdout, sys.stderr


def end_lines():
    """Nobody waits for the end of a line that a finished call has left open."""
    for stream in _streams:
        try:
            stream.end_line()
        except (OSError, ValueError):  # a tool has closed it
            pass
