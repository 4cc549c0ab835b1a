"""A function that is a tool, and how arguments reach it."""
import functools
import inspect

from _oneturn_host import build_values, build_limits

CONTEXT = "context_variables"
RUNTIME = "runtime"  # as in **runtime, which gets what the turn knows, as in MozaiksAI of September 2025
MAX_LAYERS = 20  # decorators around a function that are looked through


class Entry:
    """One function: whether it is async, what it takes, and whether what it returns are its steps."""

    def __init__(self, function, name):
        self.function = function
        self.is_async = any(test(target) for target in (function, getattr(function, "__call__", None))
                            for test in (inspect.iscoroutinefunction, inspect.isasyncgenfunction))
        self._name = name
        plainly = inspect.isfunction(function) and not hasattr(function, "__signature__")
        self._signature = inspect.signature(function, follow_wrapped=False) if plainly else None
        names, self._rest, self._yields, self._builders = look(function, name)
        self.names_context = CONTEXT in names
        self._parameters = {plain(name): name for name in names if name not in (CONTEXT, "self")}
        self._exact = set(self._parameters.values())

    def takes_context(self, offered, map):
        """A function that takes anything gets the context if the caller has seen that it names it."""
        return self.names_context or offered and (self._rest == RUNTIME or self._rest and not map)

    def map(self, arguments, fields, known):
        """Arguments under the names of the parameters. A field that the model declares, without a model any,
        matches by letters and digits alone, everything else by its exact name: no rule has checked it under
        another one. What no parameter takes goes to **kwargs under its own name, or is dropped; **runtime gets such
        fields only if the function has no parameters, and none that a model does not declare. What the turn knows fills
        parameters that are still empty; where arguments name it without being declared, the worker has put its value
        there, but for the workflow of a **runtime, which is an ordinary name elsewhere."""
        declared = set(fields or ())
        if self._rest == RUNTIME:
            known = dict(known, workflow=known["workflow_name"])
            arguments = {name: value for name, value in arguments.items() if name in declared or plain(name) != "workflow"}
        mapped = {name: value for name, value in arguments.items() if name in self._exact}
        rest = {}
        for name, value in arguments.items():
            parameter = self._parameters.get(plain(name))
            if name in self._exact or parameter in arguments:
                continue
            if parameter is not None and (fields is None or name in fields):
                mapped[parameter] = value
            elif parameter is None and name != CONTEXT and self._passes(name, known, fields):
                rest[name] = value
        if self._rest == RUNTIME:
            rest = dict({name: value for name, value in known.items() if value}, **rest)
        own = {plain(name): value for name, value in known.items()}
        for name in self._exact:
            value = own.get(plain(name))
            if value and name not in mapped:
                mapped[name] = value
        return dict(rest, **mapped)

    def _passes(self, name, known, fields):
        """Whether an argument without a parameter goes to the parameter that takes any name."""
        if self._rest != RUNTIME:
            return bool(self._rest)
        return name in known or not self._parameters and (fields is None or name in fields)

    def build(self, arguments):
        """Arguments as the hints of their parameters name them."""
        spent = build_limits.Work()
        for name, make in self._builders.items():
            if name in arguments:
                try:
                    arguments[name] = make(arguments[name], spent)
                except build_limits.Unbuildable as error:
                    raise error.inside(name) from None
        return arguments

    def fits(self, arguments):
        """False if a call with these arguments would not reach the function's first line."""
        try:
            return self._signature is None or bool(self._signature.bind(**arguments))
        except TypeError:
            return False

    def runs_as(self, value):
        """Whether a generator is the function at work, and not data that it returned."""
        return inspect.isgenerator(value) and (self._yields or value.gi_code.co_name == self._name)


def plain(name):
    return "".join(char for char in name if char.isalnum()).lower()


def look(function, name):
    """Names of parameters, what takes any other name (false if nothing does), whether it is a generator function, and what
    builds the parameters whose hints name more than JSON.
    A decorator's function that takes anything passes it on: what counts then are the parameters of the function inside."""
    names, yields, builders = [], False, {}
    for _ in range(MAX_LAYERS):
        yields = yields or inspect.isgeneratorfunction(function)
        try:
            parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
        except (TypeError, ValueError):
            return names, True, yields, builders
        names += [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        made = build_values.builders(function)
        for p in parameters:
            if p.name in made and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != CONTEXT:
                builders.setdefault(p.name, made[p.name])
        rest = next((p.name for p in parameters if p.kind == p.VAR_KEYWORD), False)
        inner = rest and inside(function, name)
        if not inner:
            return names, rest, yields, builders
        function = inner
    return names, True, yields, builders


def inside(function, name):
    """The function that another one wraps, None if there is none or it cannot be known."""
    if hasattr(function, "__wrapped__"):
        return function.__wrapped__
    if isinstance(function, functools.partial):
        return function.func
    if inspect.ismethod(function):
        held = [function.__self__, function.__func__]
        found = functions(vars(function.__self__).values()) if hasattr(function.__self__, "__dict__") else []
        return choose(found or functions(held[1:]), name)
    if inspect.isfunction(function):
        cells = []
        for cell in function.__closure__ or ():
            try:
                cells.append(cell.cell_contents)
            except ValueError:  # not filled
                pass
        return choose(functions(cells), name)
    return choose(functions(getattr(function, "__dict__", {}).values()), name)


def functions(values):
    return [value for value in values if inspect.isfunction(value) or inspect.ismethod(value)
            or isinstance(value, functools.partial) or hasattr(value, "__wrapped__")]


def choose(found, name):
    named = [function for function in found if getattr(function, "__name__", None) == name]
    if len(named or found) == 1:
        return (named or found)[0]
    return None
