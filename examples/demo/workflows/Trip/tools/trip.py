"""The tools. Each run adds a line to the file that TRIP_LEDGER names, so that runs can be counted."""
import json
import os
import time

import oneturn


def note_run(tool, seconds=0.0):
    call = oneturn.call()
    run = {"tool": tool, "turn": call.turn, "epoch": call.epoch, "worker": os.getppid()}
    with open(os.environ["TRIP_LEDGER"], "a", encoding="utf-8") as ledger:
        ledger.write(json.dumps(run) + "\n")
    time.sleep(seconds)


def find_room(city):
    note_run("find_room")
    return {"text": f"room 12 in {city}"}


def hold_room(room):
    note_run("hold_room", 0.5)
    return {"text": f"hold of {room}"}


def pay(hold):
    note_run("pay")
    return {"text": f"paid: {hold}", "message": f"Paid: {hold}."}


def facts(draft):
    note_run("facts")
    return {"text": "the date is right"}


def style(draft):
    note_run("style")
    return {"text": "it is short"}


def editor(draft, reviews):
    note_run("editor", 0.5)
    return {"text": f"{draft} ({', '.join(reviews[name]['text'] for name in sorted(reviews))})"}
