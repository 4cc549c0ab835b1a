"""The tool. Each run adds a line to the file that TRIP_LEDGER names."""
import json
import os
import time

import oneturn


def draw(title):
    call = oneturn.call()
    with open(os.environ["TRIP_LEDGER"], "a", encoding="utf-8") as ledger:
        ledger.write(json.dumps({"tool": "draw", "turn": call.turn, "epoch": call.epoch, "worker": os.getppid()}) + "\n")
    time.sleep(0.5)
    return {"message": f"Drawn: {title}."}
