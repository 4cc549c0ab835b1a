"""Names and bodies as docs/wire-contract.md defines them. No I/O."""

import base64
import datetime
import hashlib
import json
import re
import secrets
import unicodedata

MAX_TOKEN = 64


class Subjects:
    """Subjects of an installation and a pool. Tenant, workflow and chat are ids."""

    def __init__(self, prefix, pool):
        self.prefix, self.pool = prefix, pool

    def inbound(self, kind, app, workflow, chat):
        return ".".join((self.prefix, "in", self.pool, kind, token(app), token(workflow), token(chat)))

    def events_of_turn(self, app, chat, run, turn):
        return ".".join((self.prefix, "events", token(app), token(chat), turn_token(run, turn), ">"))

    def events_of_chat(self, app, chat):
        return ".".join((self.prefix, "events", token(app), token(chat), ">"))

    def api(self, app, verb):
        return ".".join((self.prefix, "api", token(app), verb))

    def verdict(self, app):
        return ".".join((self.prefix, "verdict", token(app), secrets.token_hex(16)))


def token(text):
    """The subject token of an id."""
    if not text:
        return "-"
    if text == "-":
        return "=2D"
    data = text.encode()
    escaped = re.sub(rb"[^A-Za-z0-9_-]", lambda m: b"=%02X" % m[0][0], data).decode()
    return escaped if len(escaped) <= MAX_TOKEN else "==" + _hash(data)


def turn_token(run, turn):
    """The token of a turn key in a run of its chat."""
    run = run or ""
    return token("%d-%s%s" % (len(run.encode()), run, turn))


def message_token(run, id):
    """The token of a message with an id, in the place of the token of a turn."""
    run = run or ""
    return token("message-%d-%s%s" % (len(run.encode()), run, id))


def name(text):
    """The name of a workflow, agent or model as workers compare it."""
    return unicodedata.normalize("NFC", text or "")


def canonical(value):
    """Canonical JSON: sorted keys, no white space. Refuses what JSON does not have, such as NaN."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()


def fingerprint(*parts):
    """The fingerprint of what is published, in hex: of [workflow, agent, model, data] for a turn."""
    return hashlib.sha256(canonical(parts)).hexdigest()


def message_id(pool, kind, ids, print_of_data):
    """The Nats-Msg-Id of a message with these ids."""
    joined = b"".join(b"%d:%s" % (len(part), part) for part in ((text or "").encode() for text in (kind, *ids)))
    return _hash(joined) + print_of_data[:16] + ("" if pool == "default" else "." + pool)


def event(kind, data, allow_nan=False):
    """The body of an event of a kind. Members that are None are left out."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    body = {"type": "chat." + kind, "data": {"kind": kind, **without_none(data)}, "timestamp": now}
    return json.dumps(body, ensure_ascii=False, allow_nan=allow_nan, separators=(",", ":")).encode()


def without_none(members):
    return {key: value for key, value in members.items() if value is not None}


def _hash(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()[:22]
