"""Tools for the tests of the clients: one for each thing that a client meets."""

import time

import oneturn


def greet(name):
    return {"status": "success", "message": f"Hello, {name}!"}


def publish(title):
    answer = oneturn.ask("Approval", {"title": title}, schema={"type": "object", "required": ["approved"]})
    return {"status": "success", "message": "published" if answer["approved"] else "kept back"}


def nap(seconds):
    time.sleep(seconds)
    return {"status": "success", "message": "awake"}


def copy_text(text, count):
    return {"status": "success", "message": "copied", "text": text * count}
