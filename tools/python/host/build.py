"""Makes of JSON values what the type hints of parameters name: dataclasses, pydantic models, enums, dates and the like."""
import collections
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import inspect
import ipaddress
import json
import pathlib
import re
import sys
import types
import typing
import uuid

MAX_DEPTH = 32
LISTS = (list, collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Iterable, collections.abc.Collection)
SETS = {set: set, collections.abc.Set: set, collections.abc.MutableSet: set, frozenset: frozenset, collections.deque: collections.deque}
MAPS = {dict: dict, collections.abc.Mapping: dict, collections.abc.MutableMapping: dict,
        collections.OrderedDict: collections.OrderedDict, collections.defaultdict: dict}
PLAIN = {str: str, bool: bool, int: int, type(None): type(None)}
CLOTHES = tuple(getattr(typing, name) for name in ("Annotated", "Final", "Required", "NotRequired", "ReadOnly") if hasattr(typing, name))
DURATION = re.compile(r"(-)?P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


class Unbuildable(ValueError):
    """A value that cannot become what its hint names. The message has the place, and not the value."""

    def __init__(self, text, place=""):
        super().__init__(place + ": " + text if place else text)
        self.text, self.place = text, place

    def inside(self, place):
        return Unbuildable(self.text, place + self.place)


def hints(function):
    """What the hints of a function or class name, by parameter. One that cannot be found out is left out."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:
        pass
    found = {}
    module = sys.modules.get(getattr(function, "__module__", None))
    names = getattr(function, "__globals__", None) or vars(module or types)
    for name, annotation in (getattr(function, "__annotations__", None) or {}).items():
        holder = type("Holder", (), {"__annotations__": {name: annotation}})
        try:
            found.update(typing.get_type_hints(holder, globalns=names, include_extras=True))
        except Exception:
            pass
    return found


def builders(function):
    """Functions that build parameters, by their names. Parameters that take JSON as it is have none."""
    found = {}
    for name, hint in hints(function).items():
        build = builder(hint)
        if build is not None:
            found[name] = build
    return found


def builder(hint, depth=0):
    """A function that makes of a JSON value what a hint names, None if that is the value itself or nothing known."""
    if depth > MAX_DEPTH:
        return None
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in CLOTHES and args:
        return builder(args[0], depth + 1)
    if hasattr(hint, "__supertype__"):  # NewType
        return builder(hint.__supertype__, depth + 1)
    if type(hint).__name__ == "TypeAliasType":
        return builder(hint.__value__, depth + 1)
    if origin is typing.Union or type(hint).__name__ == "UnionType":
        return union(args, depth)
    kind = origin or hint
    if not inspect.isclass(kind):
        return None
    if model(kind):
        return lambda value: validated(hint if origin is None else kind, value)
    if kind in SIMPLE:
        return SIMPLE[kind]
    if issubclass(kind, enum.Enum):
        return lambda value: member(kind, value)
    if dataclasses.is_dataclass(kind):
        return lambda value: record(kind, value)
    if issubclass(kind, tuple):
        return (lambda value: named(kind, value)) if hasattr(kind, "_fields") else several(args, depth)
    if issubclass(kind, dict) and hasattr(kind, "__total__"):
        return lambda value: typed(kind, value)
    if kind in SETS or kind in LISTS:
        return listed(SETS.get(kind, list), args, depth)
    if kind in MAPS:
        return mapped(MAPS[kind], args, depth)
    return None


def union(args, depth):
    """The alternative whose very type the value has, else the first that can be made of it."""
    plain = {PLAIN.get(arg) for arg in args} - {None}
    if float in args:
        plain.add(float)
    choices = [build for build in (builder(arg, depth + 1) for arg in args if arg is not float) if build is not None]
    if not choices:
        return None
    as_is = any(builder(arg, depth + 1) is None and arg not in PLAIN for arg in args)

    def build(value):
        if type(value) in plain:
            return value
        fault = None
        for choice in choices:
            try:
                return choice(value)
            except Unbuildable as error:
                fault = fault or error
        if as_is:
            return value
        raise fault
    return build


def part(build, value, place):
    if build is None:
        return value
    try:
        return build(value)
    except Unbuildable as error:
        raise error.inside(place) from None


def want(value, kinds, what):
    if not isinstance(value, kinds) or isinstance(value, bool) and bool not in (kinds if isinstance(kinds, tuple) else (kinds,)):
        raise Unbuildable("must be " + what)


def listed(make, args, depth):
    inner = builder(args[0], depth + 1) if args else None
    if inner is None and make is list:
        return None

    def build(value):
        want(value, list, "a list")
        items = [part(inner, item, "/%d" % i) for i, item in enumerate(value)]
        try:
            return make(items)
        except TypeError:
            raise Unbuildable("holds what no %s can hold" % make.__name__) from None
    return build


def several(args, depth):
    """A tuple: of one kind, or with a hint for each place."""
    if len(args) == 2 and args[1] is ...:
        inner = builder(args[0], depth + 1)
        kinds = None
    else:
        inner, kinds = None, [builder(arg, depth + 1) for arg in args if arg != ()]

    def build(value):
        want(value, list, "a list")
        if kinds and len(value) != len(kinds):
            raise Unbuildable("must have %d items" % len(kinds))
        return tuple(part(kinds[i] if kinds else inner, item, "/%d" % i) for i, item in enumerate(value))
    return build


def mapped(make, args, depth):
    key = builder(args[0], depth + 1) if len(args) == 2 else None
    if len(args) == 2 and args[0] is int:
        key = number_key
    inner = builder(args[1], depth + 1) if len(args) == 2 else None
    if key is None and inner is None and make is dict:
        return None

    def build(value):
        want(value, dict, "an object")
        return make((part(key, name, "/" + name), part(inner, item, "/" + name)) for name, item in value.items())
    return build


def number_key(value):
    try:
        return int(value)
    except ValueError:
        raise Unbuildable("its key must be a whole number") from None


def fields(kind, value, names, required, make):
    """An object made of the fields that a class has. Other keys are left out, as everywhere."""
    want(value, dict, "an object")
    known = hints(kind)
    given = {}
    for name in names:
        if name in value:
            given[name] = part(builder(known.get(name)), value[name], "/" + name)
        elif name in required:
            raise Unbuildable("is missing", "/" + name)
    return attempt(lambda: make(given))


def attempt(make):
    """What a constructor returns. Its own refusal is shown in its words."""
    try:
        return make()
    except (Unbuildable, MemoryError, RecursionError):
        raise
    except Exception as error:
        raise Unbuildable("cannot be made: %s" % (error if str(error) else type(error).__name__)) from None


def record(kind, value):
    """A dataclass."""
    taken = [p for p in inspect.signature(kind).parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    required = {p.name for p in taken if p.default is p.empty}
    return fields(kind, value, [p.name for p in taken], required, lambda given: kind(**given))


def named(kind, value):
    """A NamedTuple, of an object or of a list in its order."""
    if isinstance(value, list):
        if len(value) > len(kind._fields):
            raise Unbuildable("must have at most %d items" % len(kind._fields))
        value = dict(zip(kind._fields, value))
    required = set(kind._fields) - set(kind._field_defaults)
    return fields(kind, value, kind._fields, required, lambda given: kind(**given))


def typed(kind, value):
    """A TypedDict stays the object that it is; only its fields are built."""
    want(value, dict, "an object")
    known = hints(kind)
    return {name: part(builder(known.get(name)), item, "/" + name) for name, item in value.items()}


def member(kind, value):
    """A member of an enum by its value, else by its name."""
    for one in kind:
        if type(one.value) is type(value) and one.value == value:
            return one
    if isinstance(value, str) and value in kind.__members__:
        return kind[value]
    try:
        return kind(value)
    except (ValueError, TypeError, KeyError):
        raise Unbuildable("must be one of " + ", ".join(json.dumps(one.value, default=str) for one in list(kind)[:20])) from None


def model(kind):
    return hasattr(kind, "model_validate_json") and hasattr(kind, "model_fields") or hasattr(kind, "parse_obj") and hasattr(kind, "__fields__")


def validated(kind, value):
    """A pydantic model, of version 2 or 1."""
    try:
        if hasattr(kind, "model_validate_json"):
            return kind.model_validate_json(json.dumps(value))
        return kind.parse_obj(value)
    except Exception as error:
        if not hasattr(error, "errors"):
            raise Unbuildable("cannot be made: %s" % error) from None
        faults = error.errors()
        first = faults[0]
        more = "" if len(faults) == 1 else " (and %d more)" % (len(faults) - 1)
        raise Unbuildable(first["msg"] + more, "".join("/%s" % step for step in first["loc"])) from None


def text(make, what):
    def build(value):
        want(value, str, what)
        try:
            return make(value.strip())
        except (ValueError, TypeError, ArithmeticError):
            raise Unbuildable("must be " + what) from None
    return build


def moment(value):
    if value[-1:] in "zZ" and value:  # which Python takes since 3.11 only
        value = value[:-1] + "+00:00"
    return datetime.datetime.fromisoformat(value)


def clock(value):
    return datetime.time.fromisoformat(value[:-1] + "+00:00" if value[-1:] in "zZ" and value else value)


def span(value):
    if not isinstance(value, str):
        want(value, (int, float), "a number of seconds, or a duration such as PT1H30M")
        return datetime.timedelta(seconds=value)
    found = DURATION.fullmatch(value.strip())
    if found is None or not any(found.groups()[1:]):
        raise Unbuildable("must be a number of seconds, or a duration such as PT1H30M")
    weeks, days, hours, minutes, seconds = (float(group or 0) for group in found.groups()[1:])
    length = datetime.timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return -length if found.group(1) else length


def exact(value):
    want(value, (int, float, str), "a decimal number")
    try:
        number = decimal.Decimal(str(value).strip())
    except decimal.InvalidOperation:
        number = decimal.Decimal("NaN")
    if not number.is_finite():
        raise Unbuildable("must be a decimal number")
    return number


def floating(value):
    return float(value) if type(value) is int and abs(value) <= 1 << 53 else value


SIMPLE = {
    float: floating, decimal.Decimal: exact, datetime.timedelta: span,
    datetime.datetime: text(moment, "a date and time such as 2026-08-01T12:30:00Z"),
    datetime.date: text(datetime.date.fromisoformat, "a date such as 2026-08-01"),
    datetime.time: text(clock, "a time such as 12:30:00"),
    uuid.UUID: text(uuid.UUID, "a UUID"),
}
SIMPLE.update({kind: text(kind, "a path") for kind in (
    pathlib.Path, pathlib.PurePath, pathlib.PurePosixPath, pathlib.PosixPath, pathlib.PureWindowsPath)})
SIMPLE.update({kind: text(kind, "an IP address") for kind in (
    ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network, ipaddress.IPv4Interface, ipaddress.IPv6Interface)})
