"""Functions with which tools ask questions, show surfaces and store steps: of `oneturn` and of MozaiksAI."""
import asyncio
import inspect
import json
import logging
import math
from collections.abc import Mapping

from _oneturn_host import operations, encode

log = logging.getLogger("oneturn")
TEXTS = ("text", "response", "value", "input", "user_input", "content")  # keys under which an object may hold the typed text
run_async = None  # runs a coroutine on the host's loop and waits; set by the host


def either(waits):
    """A function for both kinds of tools: on an event loop it is awaited, elsewhere it blocks its thread."""
    return waits(awaiting) if on_loop() else drive(waits(blocking))


def on_loop():
    try:
        asyncio.get_running_loop()
        return True
    except RuntimeError:
        return False


async def awaiting(owner, op, body):
    return await owner.wait(op, body)


async def blocking(owner, op, body):
    return owner.block(op, body)


def drive(coroutine):
    """Runs a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    raise RuntimeError("a blocking call was suspended")


def question(tool, payload, name, schema, secret, component, display, timeout):
    asked = surface(tool, payload, name, component, display)
    if hasattr(schema, "model_json_schema"):
        schema = schema.model_json_schema()
    asked.update(schema=encode.tree(schema, "schema"), secret=bool(secret), timeout=timeout)
    return asked


def surface(tool, payload, name, component, display):
    payload = encode.tree({} if payload is None else payload, "payload")
    if not isinstance(payload, Mapping):
        raise TypeError("the payload is %s; it must be a dict" % encode.a_kind(payload))
    return {"tool": text(tool), "name": text(name), "component": text(component), "display": text(display),
            "payload": payload}


def text(value):
    return "" if value is None else str(value)


def seconds(timeout):
    """A time to wait, 0 for as long as the turn may live."""
    if timeout is None:
        return 0
    given = number(timeout)
    if given is None or given <= 0:
        raise ValueError("timeout is %r; it must be a positive number of seconds, or None to wait for as long as the "
                         "turn may live" % (timeout,))
    return given


def number(value):
    if hasattr(value, "total_seconds"):
        value = value.total_seconds()
    try:
        value = float(value)
    except (TypeError, ValueError, ArithmeticError):
        return None
    return value if math.isfinite(value) else None


def share(percent):
    percent = number(percent)
    return -1 if percent is None else min(max(percent, 0), 100)


def ask(tool, payload=None, *, name=None, schema=None, secret=False, component=None, display=None, timeout=None):
    """Asks a question and returns the answer, any JSON value. Raises UIToolTimeoutError when its time has passed."""
    owner = operations.current("oneturn.ask")
    body = question(tool, payload, name, schema, secret, component, display, seconds(timeout))

    async def waits(wait):
        return (await wait(owner, "ask", body))["value"]
    return either(waits)


def request_input(prompt, password=False, *, name=None, component=None, display=None, timeout=None):
    """Asks a person for a text and returns it. What answers a password is a secret."""
    owner = operations.current("oneturn.request_input")
    body = question("", {"prompt": str(prompt), "password": bool(password)}, name, None, password, component, display,
                    seconds(timeout))
    body["input"] = True

    async def waits(wait):
        return typed((await wait(owner, "ask", body))["value"])
    return either(waits)


def typed(value):
    """The text of an answer. Frontends send it alone or in an object. An answer without one is its JSON."""
    if isinstance(value, dict):
        empty = not value or len(value) == 1 and isinstance(value.get("status"), str)
        value = next((value[key] for key in TEXTS if isinstance(value.get(key), str)), "" if empty else value)
    if value is None:
        return ""
    if isinstance(value, (dict, list, bool)):
        return json.dumps(value, ensure_ascii=False)
    return value if isinstance(value, str) else str(value)


def show(tool, payload=None, *, name=None, component=None, display=None):
    """Shows something that needs no answer and returns its id."""
    owner = operations.current("oneturn.show")
    body = surface(tool, payload, name, component, display)

    async def waits(wait):
        return (await wait(owner, "show", body))["id"]
    return either(waits)


def dismiss(id):
    """Removes the question or surface with the id from the frontend."""
    owner = operations.current("oneturn.dismiss")

    async def waits(wait):
        await wait(owner, "dismiss", {"id": str(id)})
    return either(waits)


def progress(percent, message="", *, tool=None, corr=None):
    """Reports how far the call is, in percent; None if unknown."""
    owner = operations.current("oneturn.progress")
    body = {"percent": share(percent), "message": text(message)[:operations.MAX_MESSAGE], "tool": text(tool), "corr": text(corr)}

    async def waits(wait):
        await wait(owner, "progress", body)
    return either(waits)


def step(name, function, *args, **kwargs):
    """Runs a function once in a turn: a later run of the tool gets the stored result and does not enter it.
    The result is decoded from JSON in each run. A step that raises stores nothing, and may be tried again. Any other name
    that the run uses twice is an error: the second step would get the result of the first."""
    owner = operations.current("oneturn.step")
    if not isinstance(name, str) or not name:
        raise ValueError("a step needs a name that is unique in the call")

    async def waits(wait):
        if name in owner.steps:
            raise RuntimeError("step %r: the run has begun a step of this name before: in a loop, make it "
                               "unique in each pass, such as \"charge 2\"" % name)
        owner.steps.add(name)
        try:
            stored = await wait(owner, "step_get", {"name": name})
            if stored["done"]:
                return stored["value"]
            value = function(*args, **kwargs)
            if inspect.isawaitable(value):
                value = await value if wait is awaiting else run_async(value)
            value = encode.tree(value, "step " + name)
            return (await wait(owner, "step_put", {"name": name, "value": value}))["value"]
        except BaseException:
            owner.steps.discard(name)
            raise
    return either(waits)


async def use_ui_tool(tool_id, payload=None, *, chat_id=None, workflow_name=None, display=None, timeout=None, name=None,
                      schema=None, secret=False, component=None, **_):
    """MozaiksAI's way to ask: the client's answer with `ui_event_id`; an answer that is not an object is returned as it is."""
    owner = operations.current("use_ui_tool")
    own(owner, "use_ui_tool", chat_id, workflow_name)
    timeout = max(number(timeout) or 0, 0)  # MozaiksAI ignores it: an invalid one must not fail
    body = question(tool_id, payload, name, schema, secret, component, display, timeout)
    answer = await owner.wait("ask", body)
    value = answer["value"]
    return dict(value, ui_event_id=answer["id"]) if isinstance(value, dict) else value


async def emit_ui_surface(tool_id, payload=None, *, chat_id=None, workflow_name=None, display=None, name=None,
                          component=None, **_):
    """MozaiksAI's way to show something; returns its id."""
    owner = operations.current("emit_ui_surface")
    own(owner, "emit_ui_surface", chat_id, workflow_name)
    return (await owner.wait("show", surface(tool_id, payload, name, component, display)))["id"]


async def emit_tool_progress_event(tool_name, progress_percent=None, status_message="", chat_id=None, correlation_id=None,
                                   **_):
    """MozaiksAI's way to report how far a tool is."""
    owner = operations.current("emit_tool_progress_event")
    own(owner, "emit_tool_progress_event", chat_id, None)
    await owner.wait("progress", {"percent": share(progress_percent), "message": text(status_message)[:operations.MAX_MESSAGE],
                                  "tool": text(tool_name), "corr": text(correlation_id)})


def own(owner, what, chat_id, workflow_name):
    """A call reaches only its own chat, whatever the tool names."""
    chat, workflow = owner.meta.get("chat_id"), owner.meta.get("workflow") or ""
    strange = chat_id is not None and str(chat_id) != chat
    strange = strange or workflow_name is not None and str(workflow_name).lower() != workflow.lower()
    if strange and not owner.warned:
        owner.warned = True
        log.warning("%s names another chat or workflow than its call; the one of the call is used", what)


INSTALLED = (ask, request_input, show, dismiss, progress, step, operations.UIToolError, operations.UIToolTimeoutError)
