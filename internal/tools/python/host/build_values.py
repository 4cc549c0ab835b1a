"""Makes of JSON values what the type hints of parameters name: dataclasses, enums, dates and the like.

The author of the values chooses how much work that is, so a call has a bound for it (Work), what a hint or a class
needs is found out once, and a union checks keys and literals before it builds one of its alternatives."""
import collections
import collections.abc
import dataclasses
import enum
import inspect
import json
import typing

from _oneturn_host import build_pydantic
from _oneturn_host.type_hints import WRAPPERS, aliased, hints, is_alias, is_union, literals, outline
from _oneturn_host.build_scalars import SIMPLE, floating, number_key
from _oneturn_host.build_limits import TooMuch, Unbuildable, Work, attempt, place, want

LISTS = (list, collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Iterable, collections.abc.Collection)
SETS = {set: set, collections.abc.Set: set, collections.abc.MutableSet: set, frozenset: frozenset, collections.deque: collections.deque}
MAPS = {dict: dict, collections.abc.Mapping: dict, collections.abc.MutableMapping: dict,
        collections.OrderedDict: collections.OrderedDict, collections.defaultdict: dict}
PLAIN = {str: str, bool: bool, int: int, type(None): type(None)}


def builders(function):
    """Functions that build parameters, by their names. Parameters that take JSON as it is have none. They take a value
    and the work of the call."""
    made = {name: builder(hint) for name, hint in hints(function).items()}
    return {name: beginning(make) for name, make in made.items() if make is not None}


def beginning(make):
    return lambda value, work=None: (work or Work()).build(make, value)


_builders = {}  # by the outline of their hints


def builder(hint):
    """A function that makes of a JSON value what a hint names, None if that is the value itself or nothing known. Hints
    that are the same have the same one."""
    try:
        key = outline(hint)
        if key in _builders:
            return _builders[key]
    except TypeError:  # it has no hash
        return builder_of(hint)
    if is_alias(hint):  # it may name itself
        _builders[key] = lambda value, work: part(builder(hint), value, None, work)
    found = _builders[key] = builder_of(hint)
    return found


def builder_of(hint):
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in WRAPPERS and args:
        return builder(args[0])
    if hasattr(hint, "__supertype__"):  # NewType
        return builder(hint.__supertype__)
    if is_alias(hint):
        return builder(aliased(hint))
    if is_union(hint):
        return union(args)
    kind = origin or hint
    if not inspect.isclass(kind):
        return None
    if build_pydantic.known(kind):
        return build_pydantic.builder(hint if origin is None else kind)
    if kind in SIMPLE:
        return SIMPLE[kind]
    if issubclass(kind, enum.Enum):
        return member(kind)
    if dataclasses.is_dataclass(kind) or issubclass(kind, tuple) and hasattr(kind, "_fields") or \
            issubclass(kind, dict) and hasattr(kind, "__total__"):
        return Record(kind)
    if issubclass(kind, tuple):
        return several(args)
    if kind in SETS or kind in LISTS:
        return listed(SETS.get(kind, list), args)
    if kind in MAPS:
        return mapped(MAPS[kind], args)
    return None


def union(args):
    """The alternative whose very type the value has, else the first that can be made of it."""
    plain = {PLAIN.get(arg) for arg in args} - {None}
    if float in args:
        plain.add(float)
    made = [builder(arg) for arg in args if arg is not float]
    choices = [make for make in made if make is not None]
    if not choices:
        return None
    as_is = any(make is None and arg not in PLAIN for arg, make in zip((arg for arg in args if arg is not float), made))

    def build(value, work):
        if type(value) in plain:
            return value
        found, refused = suited(choices, value)
        if len(found) == 1 and not as_is:
            return work.build(found[0], value)
        problem = None
        work.trying += 1
        try:
            for choice in found:
                try:
                    return work.build(choice, value)
                except TooMuch:
                    raise
                except Unbuildable as error:
                    if problem is None or error.place.count("/") > problem.place.count("/"):  # it has come further
                        problem = error
        finally:
            work.trying -= 1
        if as_is:
            return value
        raise problem or refused
    return build


def suited(choices, value):
    """The alternatives that an object may be, by its keys and by the literals of their fields, or why it is none. Those
    that have none of its keys are out if another has some."""
    if not isinstance(value, dict) or len(choices) == 1:
        return choices, None
    errors = [choice.refusal(value) if isinstance(choice, Record) else None for choice in choices]
    found = [choice for choice, problem in zip(choices, errors) if problem is None]
    akin = [choice for choice in found if not isinstance(choice, Record) or choice.knows(value)]
    return akin or found, refusal([problem for problem in errors if problem])


def refusal(errors):
    """One for all, if all are at the same place."""
    if len({problem.place for problem in errors}) != 1:
        return errors[0] if errors else None
    return Unbuildable(" or ".join(dict.fromkeys(problem.text for problem in errors)), errors[0].place)


def part(make, value, name, work):
    """A value inside another, where it has a name or number."""
    if make is None:
        return value
    try:
        return work.build(make, value)
    except Unbuildable as error:
        raise error.inside("" if name is None else place(name)) from None


def listed(make, args):
    inner = builder(args[0]) if args else None
    if inner is None and make is list:
        return None

    def build(value, work):
        want(value, list, "a list")
        if inner is None:
            items = value
        elif inner is SIMPLE[float]:  # no work to speak of
            items = [floating(item) for item in value]
        else:
            items = [part(inner, item, index, work) for index, item in enumerate(value)]
        if make in (list, collections.deque):
            return items if make is list else make(items)
        return make(work.collect(set(), items))
    return build


def several(args):
    """A tuple: of one kind, or with a hint for each place."""
    inner, kinds = None, None
    if len(args) == 2 and args[1] is ...:
        inner = builder(args[0])
    else:
        kinds = [builder(arg) for arg in args if arg != ()]

    def build(value, work):
        want(value, list, "a list")
        if kinds and len(value) != len(kinds):
            raise Unbuildable("must have %d items" % len(kinds))
        return tuple(part(kinds[index] if kinds else inner, item, index, work) for index, item in enumerate(value))
    return build


def mapped(make, args):
    key, inner = (builder(args[0]), builder(args[1])) if len(args) == 2 else (None, None)
    if len(args) == 2 and args[0] is int:
        key = number_key
    if key is None and inner is None and make is dict:
        return None

    def build(value, work):
        want(value, dict, "an object")
        pairs = [(part(key, name, name, work), part(inner, item, name, work)) for name, item in value.items()]
        return make(pairs) if key is None else work.collect(make(), pairs)
    return build


class Record:
    """Builds a dataclass, a NamedTuple (of an object, or of a list in its order), or a TypedDict, which stays the object
    that it is. Keys that are not fields are left out, as everywhere, but for a TypedDict."""

    def __init__(self, kind):
        self._kind, self._found = kind, None
        self._typed, self._named = issubclass(kind, dict), issubclass(kind, tuple)

    def _plan(self):
        """Builders of the fields, names of the required ones, values of those that are literals."""
        if self._found is None:  # when the first object is built, and all that its hints name is there
            kind, known = self._kind, hints(self._kind)
            if self._typed:
                names, required = list(known), set(kind.__required_keys__)
            elif self._named:
                names, required = kind._fields, set(kind._fields) - set(kind._field_defaults)
            else:
                taken = attempt(lambda: inspect.signature(kind)).parameters.values()
                taken = [p for p in taken if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
                names, required = [p.name for p in taken], {p.name for p in taken if p.default is p.empty}
            self._found = ({name: builder(known.get(name)) for name in names}, required,
                           {name: values for name in names for values in [literals(known.get(name))] if values})
        return self._found

    def refusal(self, value):
        """Why an object cannot be one of these, None if it may."""
        fields, required, tags = self._plan()
        for name in fields:
            if name not in value:
                if name in required:
                    return Unbuildable("is missing", place(name))
            elif name in tags and not any(type(tag) is type(value[name]) and tag == value[name] for tag in tags[name]):
                return Unbuildable("must be one of " + shown(tags[name]), place(name))
        return None

    def knows(self, value):
        return not value or any(name in value for name in self._plan()[0])

    def __call__(self, value, work):
        fields, required, _ = self._plan()
        if isinstance(value, list) and self._named:
            if len(value) > len(fields):
                raise Unbuildable("must have at most %d items" % len(fields))
            value = dict(zip(fields, value))
        want(value, dict, "an object")
        work.spend(len(fields) // 4)
        if self._typed:
            return {name: part(fields.get(name), item, name, work) for name, item in value.items()}
        given = {}
        for name, make in fields.items():
            if name in value:
                given[name] = part(make, value[name], name, work)
            elif name in required:
                raise Unbuildable("is missing", place(name))
        return attempt(lambda: self._kind(**given))


def shown(values):
    return ", ".join(json.dumps(value, default=str) for value in values[:20])


def member(kind):
    """A member of an enum by its value, else by its name."""
    known = {}
    for one in kind:
        try:
            known.setdefault((type(one.value), one.value), one)
        except TypeError:  # has no hash: the enum finds it
            pass

    def build(value, work):
        found = known.get((type(value), value)) if type(value) not in (list, dict) else None
        if found is None and isinstance(value, str):
            found = kind.__members__.get(value)
        if found is not None:
            return found
        try:
            return kind(value)
        except Exception:
            raise Unbuildable("must be one of " + shown([one.value for one in kind])) from None
    return build
