"""Turns whatever a tool returned into a tree of JSON values: without loss, or not at all."""
import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import math
import types
import uuid
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePath

from _oneturn_host import dataframes

MAX_DEPTH = 60  # readers of an event accept 64 levels; the envelope around a result takes some
MAX_INT_BITS = 200  # about 60 digits; readers of an event accept number literals of 64 characters
MIN_FLOAT = 1e-308  # readers of an event accept exponents to 308; a smaller number is zero to all but a few digits
MASK = "**********"  # what a secret shows of itself, as in pydantic

TEXTS = (PurePath, decimal.Decimal, fractions.Fraction, uuid.UUID, datetime.timedelta, complex, BaseException,
         ipaddress._IPAddressBase)  # their text is all there is to know
DUMPS = ("model_dump", "dict", "to_dicts", "to_dict", "to_pylist")  # pydantic 2 and 1, polars, others, arrow
CODE = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)

max_items = 4 << 20  # members that a result may have; more do not fit into a frame. Set by the host


class Unencodable(Exception):
    """The value has no JSON form. The message names the path inside it."""


class TooLarge(Unencodable):
    """The value has more text than a frame holds."""


def tree(value, root="result"):
    return Conversion().tree(value, (None, root), 0)


class Conversion:
    """One conversion: the objects that are open, and how many members and characters it has made. What is in a value
    twice counts twice."""

    def __init__(self):
        self._open, self._items, self._length = set(), 0, 0

    def tree(self, value, path, depth):
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._measured(value, path)
        if type(value) not in (dict, list):  # which are most
            if isinstance(value, enum.Enum):
                return self.tree(value.value, path, depth)
            if isinstance(value, int):
                return _integer(value, path)
            if isinstance(value, float):
                return _float(value, path)
            text = _scalar(value, path)
            if text is not MISSING:
                return self._measured(text, path)
        if id(value) in self._open:
            raise _refusal(path, "refers back to an object that contains it")
        if depth >= MAX_DEPTH:
            raise _refusal(path, "is nested deeper than %d levels", MAX_DEPTH)
        self._open.add(id(value))
        opened = _opened(value, path)
        if isinstance(opened, Mapping):
            made = self._mapping(opened.items(), path, depth)
        elif isinstance(opened, dataframes.Pairs):
            made = self._mapping(opened.pairs, path, depth)
        elif isinstance(opened, (list, tuple, Iterator, Collection)) and not isinstance(opened, (str, bytes)):
            made = [self._member(item, (path, index), depth) for index, item in enumerate(opened)]
        else:  # one value that it stands for
            made = self.tree(opened, path, depth + 1)
        self._open.discard(id(value))
        return made

    def _mapping(self, pairs, path, depth):
        made, keys = {}, {}
        for key, item in pairs:
            name = self._measured(key if type(key) is str else self._key(key, path, depth), path)
            if name in made:
                raise _refusal(path, "has two keys, %r and %r, that are the same in JSON", keys[name], key)
            keys[name] = key
            made[name] = self._member(item, (path, name), depth)
        return made

    def _member(self, item, path, depth):
        self._count(path)
        return self.tree(item, path, depth + 1)

    def _count(self, path):
        self._items += 1
        if self._items > max_items:
            raise _refusal(path, "is member %d, more than a result holds; store it and {hand} a reference", self._items)

    def _measured(self, text, path):
        """A text, unless all together have more characters than a frame has bytes."""
        self._length += len(text or "")
        if self._length > 2 * max_items:
            raise _refusal(path, "takes more bytes than one frame, over the limit of %d; store it and {hand} a reference",
                           2 * max_items, kind=TooLarge)
        return text

    def _key(self, key, path, depth):
        if isinstance(key, enum.Enum):
            key = key.value
        key = dataframes.plain(key)
        if isinstance(key, str):
            return key
        if key is None or isinstance(key, (bool, int, float)):
            return str(key)
        text = _scalar(key, path)
        if isinstance(text, str):
            return text
        if not isinstance(key, tuple):
            raise _refusal(path, "has a key that is %s; {hand} keys that are texts", a_kind(key))
        if depth >= MAX_DEPTH:
            raise _refusal(path, "has a key that is nested deeper than %d levels", MAX_DEPTH)
        parts = []
        for part in key:
            self._count(path)
            parts.append(self._measured(self._key(part, path, depth + 1), path))
        return "(%s)" % ", ".join(parts)


MISSING = object()


def _integer(value, path):
    if value.bit_length() > MAX_INT_BITS:
        raise _refusal(path, "is an integer of %d bits, more than a JSON reader holds; {hand} it as a string", value.bit_length())
    return value


def _float(value, path):
    if math.isnan(value):
        return None
    if math.isinf(value):
        raise _refusal(path, "is %s, which JSON does not have; {hand} None or a text", float(value))
    return value if abs(value) >= MIN_FLOAT else 0.0


def _scalar(value, path):
    """What JSON has for a value without members, MISSING for others."""
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat() if value == value else None  # pandas' NaT is not equal to itself
    if isinstance(value, TEXTS):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise _refusal(path, "is %d bytes that are not UTF-8 text; {hand} them as base64", len(value)) from None
    if callable(getattr(type(value), "get_secret_value", None)):  # pydantic's Secret, SecretStr, SecretBytes
        return MASK
    return dataframes.scalar(value, MISSING)


def _opened(value, path):
    """The value as a mapping, as an iterable of its members, or another value that it stands for."""
    if isinstance(value, (Mapping, list, tuple)):
        return value
    if isinstance(value, (set, frozenset)):
        return _sorted(value)
    if isinstance(value, CODE):
        raise _refusal(path, "is %s, not data", a_kind(value))
    try:
        table = dataframes.opened(value, max_items)
    except dataframes.Unfit as error:
        raise _refusal(path, "%s", error) from None
    if table is not None:
        return table
    for name in DUMPS:
        dump = getattr(type(value), name, None)
        if callable(dump):
            return _dumped(dump, value, path)
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if _public(field.name)}
    if isinstance(value, Iterator):
        if type(value).__module__ in ("builtins", "itertools"):
            return value
        raise _refusal(path, "is %s, which is read once and not data; {hand} what it gives", a_kind(value))
    if callable(getattr(type(value), "keys", None)) and hasattr(type(value), "__getitem__"):  # rows of databases
        return dataframes.Pairs((key, value[key]) for key in value.keys())
    return value if isinstance(value, Collection) else _attributes(value, path)


def _dumped(dump, value, path):
    try:
        return dump(value)
    except Exception as error:
        raise Unencodable("%s: %s() of %s failed: %s: %s" % (
            _text(path), dump.__name__, _kind(value), type(error).__name__, error)) from error


def _attributes(value, path):
    """The public attributes of an object; those with an underscore are private, and may be secrets."""
    found, own = {}, getattr(value, "__dict__", None)
    for kind in reversed(type(value).__mro__):
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if _public(name) and hasattr(value, name):
                found[name] = getattr(value, name)
    found.update((name, item) for name, item in (own or {}).items() if _public(name))
    if not found and (own or own is None):
        raise _refusal(path, "is %s, which has no public attributes; {hand} its data", a_kind(value))
    return found


HANDS = {"payload": "pass", "schema": "pass", "context_variables": "set"}  # what the tool does with what is converted


def _refusal(path, text, *values, kind=Unencodable):
    root = path
    while root[0] is not None:
        root = root[0]
    return kind("%s %s" % (_text(path), text.replace("{hand}", HANDS.get(root[1], "return")) % values))


def _public(name):
    return not name.startswith("_")


def _kind(value):
    kind = type(value)
    return kind.__name__ if kind.__module__.partition(".")[0] in ("builtins", "workflows") else "%s.%s" % (
        kind.__module__, kind.__name__)


def a_kind(value):
    name = _kind(value)
    return "%s %s" % ("an" if name[0] in "aeiouAEIOU" else "a", name)


def _sorted(values):
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda item: (type(item).__name__, repr(item)))


def _text(path):
    parts = []
    while path is not None:
        path, name = path
        parts.append("[%d]" % name if isinstance(name, int) else name if path is None else "." + name[:64])
    return "".join(reversed(parts))
