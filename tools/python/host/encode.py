"""Turns whatever a tool returned into a tree of JSON values."""
import dataclasses
import datetime
import enum
import inspect
import math
from collections.abc import Mapping

MAX_DEPTH = 60  # readers of an event accept 64 levels; the envelope around a result takes some
MAX_INT_BITS = 200  # about 60 digits; readers of an event accept number literals of 64 characters
MIN_FLOAT = 1e-308  # readers of an event accept exponents to 308; a smaller number is zero to all but a few digits


class Unencodable(Exception):
    """The value has no JSON form. The message names the path inside it."""


def tree(value, root="result"):
    return _tree(value, (None, root), 0, set())


def _tree(value, path, depth, open_ids):
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        return _tree(value.value, path, depth, open_ids)
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        if value.bit_length() > MAX_INT_BITS:
            raise Unencodable("%s is an integer of %d bits, more than a JSON reader holds; return it as a string"
                              % (_text(path), value.bit_length()))
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return value if abs(value) >= MIN_FLOAT else 0.0
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    opened = _open(value)
    if opened is None:
        return str(value)
    if id(value) in open_ids:
        raise Unencodable("%s refers back to an object that contains it" % _text(path))
    if depth >= MAX_DEPTH:
        raise Unencodable("%s is nested deeper than %d levels" % (_text(path), MAX_DEPTH))
    open_ids.add(id(value))
    if isinstance(opened, Mapping):
        made = {}
        for key, item in opened.items():
            name = _key(key)
            made[name] = _tree(item, (path, name), depth + 1, open_ids)
    else:
        made = [_tree(item, (path, index), depth + 1, open_ids) for index, item in enumerate(opened)]
    open_ids.discard(id(value))
    return made


def _open(value):
    """The value as a mapping or a list of its members, or None if it has none."""
    if isinstance(value, (Mapping, list, tuple)):
        return value
    if isinstance(value, (set, frozenset)):
        try:
            return sorted(value)
        except TypeError:
            return list(value)
    if isinstance(value, (type, BaseException)) or inspect.isroutine(value) or inspect.ismodule(value):
        return None
    for name in ("model_dump", "dict"):
        dump = getattr(type(value), name, None)
        if callable(dump):
            dumped = dump(value)
            return dumped if isinstance(dumped, (Mapping, list, tuple)) else [dumped]
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return getattr(value, "__dict__", None)


def _key(key):
    if isinstance(key, enum.Enum):
        key = key.value
    return key if isinstance(key, str) else str(key)


def _text(path):
    parts = []
    while path is not None:
        path, name = path
        parts.append("[%d]" % name if isinstance(name, int) else name if path is None else "." + name[:64])
    return "".join(reversed(parts))
