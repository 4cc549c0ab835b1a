"""The module `oneturn` that tools may import."""
import contextvars
import sys
import types

from _oneturn_host import questions

_current = contextvars.ContextVar("oneturn_call")
_number = contextvars.ContextVar("oneturn_number", default=0)


class RetryableToolError(Exception):
    """Nothing has happened, the call may be tried again."""


class UserError(Exception):
    """The tool rejects what the user gave; the message is shown to the user."""


class Call:
    """The running call: its user and agent, and the key and token to pass to the systems that the tool changes."""

    __slots__ = ("app_id", "chat_id", "run_id", "turn", "call_id", "workflow", "agent", "user_id", "tool",
                 "idempotency_key", "fencing_token", "epoch", "attempt", "depth")

    def __init__(self, meta):
        for name in self.__slots__:
            setattr(self, name, meta.get(name))

    def headers(self):
        """The headers of NATS messages with which the tool publishes turns: how many programs the call is in."""
        return {"Oneturn-Depth": str(self.depth)} if self.depth else {}


def call():
    """The running call. Threads that a tool starts by itself have none."""
    try:
        return _current.get()
    except LookupError:
        raise RuntimeError("oneturn.call() works only inside a tool call and in the tasks it starts") from None


def enter(meta, call_number):
    """Makes the call of this metadata the running one of the current context."""
    _current.set(Call(meta))
    _number.set(call_number)


def call_number(context=None):
    """The number of the running call, or of the call of another context; 0 outside one."""
    return _number.get() if context is None else context.get(_number, 0)


def install():
    module = types.ModuleType("oneturn", "What a Python tool may ask its worker.")
    for item in (RetryableToolError, UserError, Call, call) + questions.INSTALLED:
        item.__module__ = "oneturn"
        setattr(module, item.__name__, item)
    sys.modules["oneturn"] = module
