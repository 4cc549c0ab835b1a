"""What building the arguments of a call may cost, and how it fails. The author of the data chooses how much there is,
and which hashes its numbers have."""
import time

MAX_BUILT = 200_000  # values that are built for one call, about a second of work
MAX_HASHING = 0.25  # seconds of processor time that sets and keys of one call may take
MAX_NAME = 64  # characters of a name in a place
CHUNK = 256  # values that are hashed between two readings of the clock


class Unbuildable(ValueError):
    """A value that cannot become what its hint names. The message has the place, and not the value."""

    def __init__(self, text, place=""):
        super().__init__(place + ": " + text if place else text)
        self.text, self.place = text, place

    def inside(self, place):
        return type(self)(self.text, place + self.place)


class TooMuch(Unbuildable):
    """A value that takes more work than a call may cause. No alternative of a union is tried after it."""


class Work:
    """The work of one call. Within a union no value is built twice by the same builder: alternatives that share a
    subtree would double the work at each level."""

    def __init__(self):
        self.trying = 0  # unions that try several alternatives
        self._left, self._hashing, self._made = MAX_BUILT, MAX_HASHING, {}

    def spend(self, count=1):
        self._left -= count
        if self._left < 0:
            raise TooMuch("is more than the %d values that are built for a call: pass less, or take it without a type hint"
                          % MAX_BUILT)

    def build(self, make, value):
        self.spend()
        if not self.trying or type(value) not in (dict, list):
            return make(value, self)
        key = id(make), id(value)
        known = self._made.get(key)
        if known is None:
            try:
                known = value, make(value, self), None  # with the value, whose id must not be another's
            except TooMuch:
                raise
            except Unbuildable as error:
                known = value, None, error.with_traceback(None)
            self._made[key] = known
        if known[2] is not None:
            raise known[2].inside("")
        return known[1]

    def collect(self, found, items):
        """Adds items to a set or dict. Numbers, and what is made of numbers, can be chosen so that all hashes collide."""
        for start in range(0, len(items), CHUNK):
            begun = time.thread_time()
            attempt(lambda: found.update(items[start:start + CHUNK]), "holds what no %s can hold" % type(found).__name__)
            self._hashing -= time.thread_time() - begun
            if self._hashing < 0:
                raise TooMuch("holds too many values whose hashes collide: pass fewer, or take them as a list")
        return found


def place(name):
    """A step on the way to a value. The names are data."""
    return "/%s" % str(name)[:MAX_NAME]


def attempt(make, unhashable=""):
    """What a constructor returns. Its error text is kept."""
    try:
        return make()
    except (Unbuildable, MemoryError, RecursionError):
        raise
    except Exception as error:
        if unhashable and isinstance(error, TypeError):
            raise Unbuildable(unhashable) from None
        raise Unbuildable("cannot be made: %s" % (error if str(error) else type(error).__name__)) from None


def want(value, kinds, what):
    if not isinstance(value, kinds) or isinstance(value, bool) and bool not in (kinds if isinstance(kinds, tuple) else (kinds,)):
        raise Unbuildable("must be " + what)
