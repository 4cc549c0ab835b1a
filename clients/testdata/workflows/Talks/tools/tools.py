"""Tools for the messages of the tests."""

import oneturn


def draw(title):
    if title == "Ask":
        oneturn.ask("Approval", {"title": title}, schema={"type": "object"})
    return {"message": f"drawn: {title}"}


def build(title):
    return {"message": f"built: {title}"}


def reviser(request, **rest):
    """Stands in for a model: its first reply is as wrong as the output."""
    return {"title": "Shop" if request["output"] == '{"title":""}' else ""}
