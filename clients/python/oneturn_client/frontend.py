"""What a frontend shows of an event. Pure functions: an event is the envelope, or its data alone."""


def component_payload(event):
    """The payload for the component of a tool_call: the arguments of an automatic call are moved up into the payload, and
    so are the fields of the argument that has the component's name, if that is an object. Later ones win: payload, fields
    of that object, other arguments. The event is not changed."""
    data = _data(event)
    payload, component = data.get("payload"), data.get("component_type")
    if not isinstance(payload, dict):
        return payload
    args = payload.get("tool_args")
    if payload.get("interaction_type") != "auto_tool" or not isinstance(args, dict) or isinstance(args.get("$blob"), str):
        return dict(payload)
    flat = {key: value for key, value in payload.items() if key != "tool_args"}
    model = args.get(component) if isinstance(component, str) else None
    if not isinstance(model, dict):
        return {**flat, **args}
    return {**flat, **model, **{key: value for key, value in args.items() if key != component}}


def is_shown(event):
    """Whether a chat shows an event: not what is hidden, and not that an automatic call succeeded."""
    data = _data(event)
    if data.get("ui_hidden") is True:
        return False
    response = data.get("kind") in ("tool_response", "chat.tool_response")
    return not (response and data.get("interaction_type") == "auto_tool" and data.get("success") is True)


def _data(event):
    return event["data"] if isinstance(event.get("data"), dict) and "kind" not in event else event
