"""The state that a process has once, such as its working folder. Changes by one call must not reach the next one."""
import _signal  # the module signal makes an enum of each value first
import os
import signal
import socket
import sys
import threading
import time

SIGNALS = [int(getattr(signal, name)) for name in ("SIGALRM", "SIGVTALRM", "SIGPROF", "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT",
                                              "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE", "SIGWINCH")]
TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
STREAMS = ("stdin", "stdout", "stderr")

_reported = set()


def folder():
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def change_back(saved):
    if saved is not None and folder() != saved:
        try:
            os.chdir(saved)
        except OSError:
            pass


def environment():
    return os.environ.copy() if not hasattr(os.environ, "_data") else dict(os.environ._data)


def restore_environment(saved):
    if environment() == saved:
        return
    decode = getattr(os.environ, "decodevalue", str)
    before = {decode(name): decode(value) for name, value in saved.items()}
    changed = {name for name in before.keys() | os.environ.keys() if before.get(name) != os.environ.get(name)}
    for name in changed:
        if name in before:
            os.environ[name] = before[name]
        else:
            del os.environ[name]
    if "TZ" in changed:
        time.tzset()
    for name in sorted(changed - _reported):
        _reported.add(name)
        print("environment variable %s, which a call has changed, is as before again: set it while the file is imported, "
              "or in .env" % name, file=sys.stderr)


def umask():
    found = os.umask(0o077)
    os.umask(found)
    return found


def handlers():
    return [_signal.getsignal(number) for number in SIGNALS]


def handle(saved):
    for number, handler in zip(SIGNALS, saved):
        if handler is not None and _signal.getsignal(number) is not handler:
            signal.signal(number, handler)


def timers():
    return [_signal.getitimer(which)[0] > 0 for which in TIMERS]


def disarm(saved):
    for which, armed in zip(TIMERS, saved):
        if not armed and _signal.getitimer(which)[0] > 0:
            signal.setitimer(which, 0)


def streams():
    return [getattr(sys, name) for name in STREAMS]


def connect(saved):
    for name, stream in zip(STREAMS, saved):
        setattr(sys, name, stream)


def culture():
    module = sys.modules.get("locale")
    return module.setlocale(module.LC_ALL) if module is not None else None


def speak(saved):
    if saved is not None and culture() != saved:
        sys.modules["locale"].setlocale(sys.modules["locale"].LC_ALL, saved)


KEPT = (  # how each is read and written; timers come before their handlers
    (timers, disarm), (handlers, handle), (folder, change_back), (environment, restore_environment), (streams, connect), (umask, os.umask),
    (culture, speak), (socket.getdefaulttimeout, socket.setdefaulttimeout), (sys.getrecursionlimit, sys.setrecursionlimit),
)
FOLDER = 2  # its place there


class State:
    """The state of the process now."""

    def __init__(self):
        self._saved = [read() for read, _ in KEPT]
        self.folder = self._saved[FOLDER]

    def restore(self):
        """Restores all of it. Only the main thread can."""
        for (_, write), saved in zip(KEPT, self._saved):
            try:
                write(saved)
            except (OSError, ValueError, RecursionError):
                pass


class Keeper:
    """Restores the state when no call is left that may need what it has changed."""

    def __init__(self):
        self._lock = threading.Lock()
        self._calls, self._home, self._spoilt = 0, None, False

    def begin(self):
        """A call begins. What was imported before belongs to the process."""
        with self._lock:
            if self._calls == 0 and on_main():
                if self._spoilt:
                    self._home.restore()
                self._home, self._spoilt = State(), False
            self._calls += 1

    def end(self):
        """A call has ended. While others run, only the working folder is put back: none of them may rely on another one."""
        with self._lock:
            self._calls -= 1
            if self._calls > 0 or not on_main():
                self._spoilt = True
                change_back(self._home.folder if self._home else None)
            else:
                self._home.restore()


def on_main():
    return threading.current_thread() is threading.main_thread()
