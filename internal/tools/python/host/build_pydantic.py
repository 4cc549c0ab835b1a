"""Models of pydantic, of version 2 and 1, which build themselves. What is measured before is the work that data causes."""
import collections
import collections.abc
import dataclasses
import inspect
import json
import re
import typing

from _oneturn_host.type_hints import WRAPPERS, aliased, hints, is_alias, is_union, literals
from _oneturn_host.build_limits import TooMuch, Unbuildable, place

MAX_COLLIDING = 1000  # numbers of one hash
STEP = 8  # what an object costs that pydantic may try, which is as much as others take to build
MAX_NAMES = 20  # of a type for another one
NUMBERS = re.compile(r"\d{19,}|[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")  # that may be chosen by their hashes


def known(kind):
    return hasattr(kind, "model_validate_json") and hasattr(kind, "model_fields") or hasattr(kind, "parse_obj") and hasattr(kind, "__fields__")


def builder(kind):
    found = []

    def build(value, work):
        if not found:
            found.append(ambiguous(kind))
        if found[0]:
            try:
                walk(kind, value, work)
            except TooMuch:
                raise TooMuch("takes too many steps to validate: pass less, or give the unions of the model a discriminator") from None
        text = json.dumps(value)
        if collide(text):
            raise TooMuch("holds too many numbers whose hashes collide: pass fewer")
        return validated(kind, value, text)
    return build


def validated(kind, value, text):
    try:
        if hasattr(kind, "model_validate_json"):
            return kind.model_validate_json(text)
        return kind.parse_obj(value)
    except Exception as error:
        if not hasattr(error, "errors"):
            raise Unbuildable("cannot be made: %s" % error) from None
        problems = error.errors()
        first = problems[0]
        more = "" if len(problems) == 1 else " (and %d more)" % (len(problems) - 1)
        raise Unbuildable(first["msg"] + more, "".join(place(step) for step in first["loc"])) from None


def collide(text):
    """Whether so many numbers of a text have the same hash that a set of them would take quadratic time."""
    numbers = NUMBERS.findall(text)
    if len(numbers) <= MAX_COLLIDING:
        return False
    counts = collections.Counter(hash(int(number.replace("-", ""), 16 if len(number) > 31 else 10)) for number in set(numbers))
    return counts.most_common(1)[0][1] > MAX_COLLIDING


def structured(kind):
    """Whether a class declares fields with hints."""
    return inspect.isclass(kind) and not typing.get_args(kind) and (known(kind) or dataclasses.is_dataclass(kind) or hasattr(kind, "__total__"))


def fields(kind):
    """The hints of a class by the names that its fields have in data, with what distinguishes alternatives. What is data
    itself, without a name, has the name None."""
    try:
        kind.model_rebuild()  # so that annotations have no names any more
    except Exception:
        pass
    found, named = {}, hints(kind)
    about = getattr(kind, "model_fields", None) or getattr(kind, "__fields__", None) or {}
    for name in dict.fromkeys([*named, *about]):
        field = about.get(name)
        hint = getattr(field, "outer_type_", None) or getattr(field, "annotation", None) or named.get(name)
        tag = getattr(field, "discriminator", None) or getattr(field, "discriminator_key", None)
        for key in {name, getattr(field, "validation_alias", None), getattr(field, "alias", None)}:
            if isinstance(key, str):
                found[key] = hint, tag
        if name == "__root__" or name == "root" and getattr(kind, "__pydantic_root_model__", False):
            found[None] = hint, tag
    return found


def opened(hint):
    """A hint without its name."""
    for _ in range(MAX_NAMES):
        if is_alias(hint):
            hint = aliased(hint)
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        else:
            break
    return hint


def ambiguous(kind):
    """Whether a class has a union of several classes or containers somewhere inside: pydantic tries each of them with
    the whole subtree, which takes exponential time if they hold each other."""
    left, seen = [kind], {}
    while left:
        hint = left.pop()
        if id(hint) in seen:
            continue
        seen[id(hint)] = hint
        hint = opened(hint)
        args = typing.get_args(hint)
        if is_union(hint) and sum(structured(opened(arg)) or bool(typing.get_args(opened(arg))) for arg in args) > 1:
            return True
        if structured(hint):
            left += [inner for inner, _ in fields(hint).values()]
        left += args
    return False


_fields = {}  # of classes, by their ids, with the class


def walk(hint, value, work, tag=None):
    """Counts the alternatives that pydantic may try, so that they stay below the limit of a call."""
    if not isinstance(value, (dict, list)):
        return
    hint = opened(hint)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in WRAPPERS and args:
        marks = [getattr(mark, "discriminator", None) for mark in args[1:]]
        walk(args[0], value, work, next(filter(None, marks), tag))
    elif is_union(hint):
        for arg in args:
            if not tag or matches_tag(arg, tag, value):
                walk(arg, value, work)
    elif structured(hint):
        work.spend(STEP)
        if id(hint) not in _fields:
            _fields[id(hint)] = fields(hint), hint
        for name, (inner, own) in _fields[id(hint)][0].items():
            if name is None:
                walk(inner, value, work, own)
            elif name in value and isinstance(value, dict):
                walk(inner, value[name], work, own)
    elif args and isinstance(value, dict) == (inspect.isclass(origin) and issubclass(origin, collections.abc.Mapping)):
        work.spend(STEP + len(value))
        several = isinstance(value, list) and len(args) > 1 and args[-1] is not ...
        for index, item in enumerate(value.values() if isinstance(value, dict) else value):
            inner = args[min(index, len(args) - 1)] if several else args[0 if isinstance(value, list) else -1]
            walk(inner, item, work)


def matches_tag(kind, tag, value):
    """Whether an alternative is the one that its tag names."""
    kind = opened(kind)
    if not isinstance(tag, str) or not structured(kind) or not isinstance(value, dict):
        return True
    values = literals(fields(kind).get(tag, (None, None))[0])
    return not values or value.get(tag) in values
