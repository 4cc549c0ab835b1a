"""Reads a list of module names from stdin, writes those that cannot be found. Imports none of them."""
import sys

sys.path[:] = [p for p in sys.path if p]
import importlib.util
import json


def missing(name):
    try:
        return name not in sys.modules and importlib.util.find_spec(name) is None
    except (ImportError, ValueError):
        return True


names = json.loads(sys.stdin.buffer.read().decode("utf-8"))
sys.stdout.buffer.write(json.dumps([name for name in names if missing(name)]).encode("ascii"))
