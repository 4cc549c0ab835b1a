"""The container of context variables that a tool gets as `context_variables`."""
from collections.abc import Mapping

from _oneturn_host import encode, frames


class ContextVariables:
    """Context variables of the chat. Changes reach the chat when the tool has returned."""

    def __init__(self, data):
        self.data = dict(data)

    def get(self, key, default=None):
        return self.data.get(key, default)

    def set(self, key, value):
        self.data[key] = value

    def remove(self, key):
        """Removes a variable; reports whether it was there."""
        there = key in self.data
        self.data.pop(key, None)
        return there

    def update(self, other=(), **more):
        self.data.update(other.data if isinstance(other, ContextVariables) else other, **more)

    def contains(self, key):
        return key in self.data

    def keys(self):
        return self.data.keys()

    def values(self):
        return self.data.values()

    def items(self):
        return self.data.items()

    def to_dict(self):
        return dict(self.data)

    def __contains__(self, key):
        return key in self.data

    def __getitem__(self, key):
        return self.data[key]

    def __setitem__(self, key, value):
        self.data[key] = value

    def __delitem__(self, key):
        del self.data[key]

    def __iter__(self):
        return iter(self.data)

    def __len__(self):
        return len(self.data)

    def __repr__(self):
        return "ContextVariables(%s)" % ", ".join(sorted(map(str, self.data)))


class Tracked:
    """A container and what was in it, so that changes made in any way are found afterwards."""

    def __init__(self, data):
        self._before = {key: frames.dumps(value) for key, value in data.items()}
        self.container = ContextVariables(data)

    def changes(self):
        """What to set and what to remove, as JSON trees."""
        data = self.container.data
        if not isinstance(data, Mapping):
            raise encode.Unencodable("context_variables.data was replaced by a %s; it must be a dict" % type(data).__name__)
        after = encode.tree(data, "context_variables")
        changed = {key: value for key, value in after.items() if frames.dumps(value) != self._before.get(key)}
        return changed, sorted(key for key in self._before if key not in after)
