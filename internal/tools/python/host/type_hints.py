"""Type hints, as Python has them at run time."""
import sys
import types
import typing

WRAPPERS = tuple(getattr(typing, name) for name in ("Annotated", "Final", "Required", "NotRequired", "ReadOnly") if hasattr(typing, name))


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


_aliased = {}  # what aliases stand for, by their ids, with the alias


def is_alias(hint):
    return type(hint).__name__ == "TypeAliasType"


def aliased(alias):
    """What a TypeAliasType stands for. Its text may name itself and what stands below it."""
    if id(alias) not in _aliased:
        value = getattr(alias, "__value__", None)
        holder = type("Holder", (), {"__annotations__": {"value": value}})
        try:
            names = vars(sys.modules[alias.__module__])
            value = typing.get_type_hints(holder, globalns=names, include_extras=True)["value"]
        except Exception:
            pass
        _aliased[id(alias)] = value, alias
    return _aliased[id(alias)][0]


def is_union(hint):
    return typing.get_origin(hint) is typing.Union or type(hint).__name__ == "UnionType"


def outline(hint):
    """What distinguishes a hint. Hints themselves do not: unions are equal whatever their order."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in WRAPPERS and args:
        return outline(args[0])
    return (origin,) + tuple(outline(arg) for arg in args) if args else hint


def literals(hint):
    """The values that a hint admits, if it is a Literal."""
    while typing.get_origin(hint) in WRAPPERS:
        hint = typing.get_args(hint)[0]
    return typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()
