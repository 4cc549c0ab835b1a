"""What the records of a turn or message mean. No I/O."""

import typing

from .errors import ConflictError, OneturnError


class Turn(typing.NamedTuple):
    """A turn as read: its response, else whether it is claimed, its open questions, and whether only other data has a response."""

    response: typing.Optional[dict] = None
    claimed: bool = False
    questions: tuple = ()
    conflict: bool = False

    def missing(self):
        return "its tool runs, or waits for an answer" if self.claimed else "no worker has claimed it: none serves its workflow and pool, or all are busy"


def read_turn(records, fingerprint):
    """Reads the records of a turn: with a fingerprint of the one with this data."""
    called, claimed, other, questions = False, False, False, {}
    for record in records:
        kind, digest, data = record["kind"], record.get("fingerprint", ""), (record.get("event") or {}).get("data")
        if kind == "tool_call":
            called, claimed = True, claimed or not fingerprint or digest == fingerprint
        elif kind == "tool_response":
            if not fingerprint or called and digest in ("", fingerprint):
                return Turn(_readable(data), True)
            other = other or called  # a response without a call is left of an earlier turn
        elif data and data.get("awaiting_response"):
            questions[data["tool_call_id"]] = data
        elif data and data.get("kind") == "tool_call_ack":
            questions.pop(data["tool_call_id"], None)
    return Turn(None, claimed, tuple(questions.values()), other and not claimed)


class Message(typing.NamedTuple):
    """A message as read: the data of its events, and what the workers know of its turn."""

    text: typing.Optional[dict]
    output: typing.Optional[dict]
    updates: list
    handoff: typing.Optional[dict]
    due: tuple
    turn_fingerprint: str

    @property
    def output_due(self):
        """Whether a structured output follows: of an agent that has a model and no tool that runs by itself."""
        text = self.text
        return bool(not text.get("turn_idempotency_key") and text.get("model_name") and ("structured_output" in text or text.get("unread")))


def read_message(records, fingerprint):
    """Reads the records of a message: with a fingerprint of the one with this content. What is older than the text is left of an
    earlier message with the id."""
    text, output, updates, handoff, due, of_turn = None, None, [], None, (), ""
    for record in records:
        kind, data = record["kind"], (record.get("event") or {}).get("data")
        if kind == "text":
            if fingerprint and record.get("fingerprint") != fingerprint:
                raise ConflictError("the id of the message was used before with other content, and this content changes nothing: use another id, "
                                    "or a run id")
            output, updates, handoff = None, [], None
            text, due, of_turn = data, tuple(record.get("due", "").split(",")), record.get("turn_fingerprint", "")
        elif kind == "structured_output":
            output = data
        elif kind == "context_update":
            updates.append(data)
        elif kind == "handoff":
            handoff = data
    return Message(text, output, updates, handoff, due, of_turn)


def turn_conflict(chat, turn):
    return ConflictError("turn %.80s of chat %.80s: the key was used before with other data, and this data does not run: "
                         "use another key, or a run id" % (turn, chat))


def _readable(data):
    if data is None:
        raise OneturnError("the turn has ended, and its response in the journal is damaged: see turnctl show")
    return data
