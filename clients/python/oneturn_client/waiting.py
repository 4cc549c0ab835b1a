"""Waits until something is stored: live copies can be lost, so it is read from the workers as well."""

import time
import typing

from . import reading, wire
from .errors import NoWorkerError, UnfinishedError

REREAD = 5  # seconds
RETRY = 1  # while no worker answers, or soon is set
SETTLE = 3  # after which a turn whose key has other data is not claimed any more, if no handoff shows that


class Pending(typing.NamedTuple):
    """What is missing, as read."""

    why: str
    soon: bool = False
    questions: tuple = ()


def until(nats, subject, timeout, on_question, read, relevant=lambda subject: True):
    """Calls read until it returns something else than Pending: at the start, when a live copy that is relevant arrives, and after a while."""
    end, reported = time.monotonic() + timeout, set()
    live = nats.subscribe(subject)
    try:
        while True:
            state, failed = Pending("", soon=True), None
            try:
                state = read()
            except NoWorkerError as error:
                failed = error
            if not isinstance(state, Pending):
                return state
            for question in state.questions:
                if question["tool_call_id"] not in reported:
                    reported.add(question["tool_call_id"])
                    if on_question:
                        on_question(question)
            left = end - time.monotonic()
            if left <= 0:
                raise failed or UnfinishedError(state.why)
            _wait_for_news(live, min(left, RETRY if state.soon else REREAD), relevant)
    finally:
        live.close()


def _wait_for_news(live, seconds, relevant):
    end = time.monotonic() + seconds
    while message := live.next(end - time.monotonic()):
        if relevant(message.subject):
            while live.next(0):  # one read for all that has arrived
                pass
            return


class MessageWait:
    """The wait for all that follows from a message. read_records is a function of a request of the verb turn."""

    def __init__(self, subjects, app, chat, run, id, fingerprint, read_records):
        self._chat, self._run, self._id, self._print, self._records = chat, run, id, fingerprint, read_records
        self._pool, self.subject = subjects.pool, subjects.events_of_chat(app, chat)
        self._tokens = {wire.message_token(run, id)}  # of the message, and of the turns that it makes
        self._corrections, self._response, self._conflict = 0, None, None

    def relevant(self, subject):
        return subject[len(self.subject) - 1:].split(".", 1)[0] in self._tokens

    def read(self):
        """Reads what is stored: {text, response, output, updates, handoff} if that is all, else what is missing."""
        m = reading.read_message(self._records({"chat_id": self._chat, "run_id": self._run, "message_id": self._id}), self._print)
        if m.text is None:
            return self._pending("no worker has stored it: none serves pool %s, or all are busy" % self._pool, soon=True)
        turn = self._read_turns(m)  # after the message: what comes before its handoff is stored
        if turn.conflict:
            self._conflict = self._conflict or time.monotonic()
            settled = "handoff" not in m.due and time.monotonic() - self._conflict >= SETTLE
            if m.handoff or "turn" not in m.due or settled:
                raise reading.turn_conflict(self._chat, m.text["turn_idempotency_key"])
        if "turn" in m.due and not self._response and not m.handoff:
            why = "of its turn %.80s, %s" % (m.text["turn_idempotency_key"], turn.missing())
            return self._pending(why, soon=not turn.claimed, questions=turn.questions)
        if "handoff" in m.due and not m.handoff:
            return self._pending("its handoff is not stored")
        if m.output_due and not m.output:
            return self._pending("its structured output is not stored")
        return {"text": m.text, "response": self._response, "output": m.output, "updates": m.updates, "handoff": m.handoff}

    def _read_turns(self, m):
        """Reads the turn of the message, or of its last correction, if that is stored."""
        key = m.text.get("turn_idempotency_key")
        while key and not self._response:
            turn, digest = key, m.turn_fingerprint
            if self._corrections:
                turn, digest = "%s~%d" % (key, self._corrections), ""
            self._tokens.add(wire.turn_token(self._run, turn))  # first, so that nothing is missed
            request = {"chat_id": self._chat, "run_id": self._run, "turn": turn, "fingerprint": digest or None}
            state = reading.read_turn(self._records(request), digest)
            if not state.response:
                return state
            if state.response.get("correcting") and self._corrections < m.text.get("corrections", 0):
                self._corrections += 1
            else:
                self._response = state.response
        return reading.Turn(claimed=True)

    def _pending(self, why, **more):
        return Pending("message %.80s of chat %.80s is not complete yet: %s" % (self._id, self._chat, why), **more)
