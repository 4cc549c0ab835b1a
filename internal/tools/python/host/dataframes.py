"""What arrays, tables and scalars of numpy, pandas, torch and the like stand for. None of them is imported here."""
import sys


class Unfit(Exception):
    """The value has no JSON form; the message has the reason, without its place."""


class Pairs:
    """Pairs of a key and its value, of which none replaces another."""

    def __init__(self, pairs):
        self.pairs = list(pairs)


def scalar(value, otherwise):
    """The JSON value of a scalar of pandas."""
    kind = type(value)
    if kind.__module__.partition(".")[0] != "pandas":
        return otherwise
    if kind.__name__ in ("NAType", "NaTType"):
        return None
    return str(value) if kind.__name__ in ("Period", "Interval") else otherwise


def plain(value):
    """A number of numpy as one of Python, others as they are."""
    if hasattr(type(value), "dtype") and getattr(value, "shape", None) == ():
        return value.item()
    return value


def opened(value, max_items):
    """The value as lists, rows or pairs, None if it is not of this sort."""
    if isinstance(value, known("DataFrame")):
        return rows(fitting(value, max_items))
    if isinstance(value, known("Series")):
        fitting(value, max_items)
        found = without_gaps(value).tolist()
        return found if counts(value.index) else Pairs(zip(value.index, found))
    kind = type(value)
    if not callable(getattr(kind, "tolist", None)):
        return None
    dtype = getattr(fitting(value, max_items), "dtype", None)
    if getattr(dtype, "kind", "") in ("M", "m"):  # times, of which tolist may make numbers
        return value.astype(str).tolist()
    listed = value.tolist()
    if type(listed) is kind:
        raise Unfit("is a %s.%s, which JSON does not have" % (kind.__module__, kind.__name__))
    names = getattr(dtype, "names", None)
    return records(listed, names) if names else listed


def fitting(value, max_items):
    size = getattr(value, "size", 0)
    if isinstance(size, int) and size > max_items:
        raise Unfit("has %d members, more than a result holds; store it and return a reference" % size)
    return value


def known(name):
    """A class of pandas; no class while nothing has imported it."""
    return getattr(sys.modules.get("pandas"), name, ())


def records(listed, names):
    if isinstance(listed, list):
        return [records(item, names) for item in listed]
    return dict(zip(names, listed))


def rows(frame):
    """The rows of a table. Its index is a column, unless it just counts the rows."""
    if not counts(frame.index):
        frame = frame.reset_index()
    names = list(frame.columns)
    if len(set(names)) < len(names):
        raise Unfit("is a table with two columns of the same name: %s" % ", ".join(map(str, names))[:200])
    return [dict(zip(names, row)) for row in without_gaps(frame).itertuples(index=False, name=None)]


def without_gaps(data):
    """None where a value is missing, and values of Python elsewhere."""
    return data.astype(object).where(data.notna(), None)


def counts(index):
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1 and index.name is None
