"""Three tools. Each run adds a line to the file that HELLO_LEDGER names, so that runs can be counted."""
import json
import os
import time

import oneturn

HELLO = {"en": "Hello", "de": "Hallo", "fr": "Bonjour"}


def note_run(tool):
    if path := os.environ.get("HELLO_LEDGER"):
        run = {"tool": tool, "turn": oneturn.call().turn, "epoch": oneturn.call().epoch, "worker": os.getppid()}
        with open(path, "a", encoding="utf-8") as ledger:
            ledger.write(json.dumps(run) + "\n")


def greet(name, language):
    note_run("greet")
    return {"status": "success", "message": f"{HELLO[language]}, {name}!"}


def charge(customer, cents, seconds):
    note_run("charge")
    time.sleep(seconds)  # a slow bank
    return {"status": "success", "message": f"{customer} paid {cents / 100:.2f}."}


def file_note(text, seconds):
    note_run("file_note")
    time.sleep(seconds)  # a slow disk
    return {"status": "success", "message": f"Filed {len(text)} characters."}
