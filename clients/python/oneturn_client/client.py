"""The client. Its methods block; in asyncio call them by asyncio.to_thread."""

import hashlib
import json
import time

from . import reading, waiting, wire
from . import transport as connections
from .errors import NoWorkerError, OneturnError, UndecidedError
from .transport import NoRespondersError

REQUEST_TIMEOUT = 5
PUBLISH_TRIES = 3
MESSAGE_TOO_LARGE = 10054  # err_code of JetStream
UNKNOWN_FOR = 3  # how long a question is looked up that no worker knows yet


class Client:
    """Publishes turns and messages, waits for responses, answers questions. The connection is a URL, or what connect returns:
    that stays the caller's. Methods may be called from any thread."""

    def __init__(self, connection="nats://127.0.0.1:4222", *, app="default", pool="default", prefix="oneturn", **options):
        self._own = isinstance(connection, str)
        self._nats = connections.connect(connection, **options) if self._own else connection
        self._app, self._subjects = app, wire.Subjects(prefix, pool)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._own:
            self._nats.close()

    def publish_turn(self, *, chat, turn, workflow, data, agent="", model="", app=None, run=None, user_id=None, sequence=None,
                     context_variables=None, correction_of=None):
        """Stores a turn and returns {stream, seq, duplicate}. It then gets exactly one response; repeating it is harmless."""
        app, workflow, agent, model = app or self._app, wire.name(workflow), wire.name(agent), wire.name(model)
        _require("turn", chat=chat, turn=turn, workflow=workflow)
        digest = wire.fingerprint(workflow, agent, model, data)
        return self._publish("structured_output_ready", app, workflow, chat, (app, chat, run, turn), digest, {
            "agent": agent, "model_name": model, "structured_data": data, "auto_tool_mode": True, "turn_idempotency_key": turn, "run_id": run,
            "correction_of": correction_of, "context": _context(app, chat, workflow, user_id, sequence, context_variables)})

    def publish_message(self, *, chat, id, workflow, agent, content, app=None, run=None, turn=None, finish_reason=None, user_id=None,
                        sequence=None, context_variables=None):
        """Stores what an agent has written: a text, or an object. A message id of a chat and run is handled once; repeating it is harmless."""
        app, workflow, agent = app or self._app, wire.name(workflow), wire.name(agent)
        _require("message", chat=chat, id=id, workflow=workflow, agent=agent)
        if agent == "user":
            raise OneturnError("the agent user stands for people: publish what they write with publish_user_message")
        digest = _message_fingerprint(workflow, agent, content, turn or id, user_id, context_variables)
        return self._publish("agent_message", app, workflow, chat, (app, chat, run, id), digest, {
            "agent": agent, "content": content, "message_id": id, "finish_reason": finish_reason, "turn_idempotency_key": turn, "run_id": run,
            "turn_sequence": sequence, "context": _context(app, chat, workflow, user_id, sequence, context_variables)})

    def publish_user_message(self, *, chat, id, workflow, content, user_id=None, app=None, run=None, sequence=None, context_variables=None):
        """Stores what a user has written."""
        app, workflow = app or self._app, wire.name(workflow)
        _require("message", chat=chat, id=id, workflow=workflow)
        digest = _message_fingerprint(workflow, "user", content, id, user_id, context_variables)
        return self._publish("user_message", app, workflow, chat, (app, chat, run, id), digest, {
            "id": id, "chat_id": chat, "user_id": user_id, "content": content, "run_id": run,
            "context": _context(app, chat, workflow, user_id, sequence, context_variables)})

    def publish_raw(self, kind, body, *, app, workflow, chat):
        """Stores the bytes of an event of a kind as they are."""
        return self._send(self._subjects.inbound(kind, app, workflow, chat), body)

    def run_turn(self, *, timeout=60, on_question=None, **turn):
        """Publishes a turn, as publish_turn, and waits for its response."""
        self.publish_turn(**turn)
        digest = wire.fingerprint(*(wire.name(turn.get(part, "")) for part in ("workflow", "agent", "model")), turn["data"])
        return self.wait(chat=turn["chat"], turn=turn["turn"], app=turn.get("app"), run=turn.get("run"), fingerprint=digest, timeout=timeout,
                         on_question=on_question)

    def wait(self, *, chat, turn, app=None, run=None, fingerprint="", timeout=60, on_question=None):
        """Waits for the response of a turn, the data of its event. on_question is called once for each open question, with the
        data of its event. With a fingerprint a response to other data is a ConflictError."""
        app = app or self._app
        _require("turn", chat=chat, turn=turn)

        def read():
            state = reading.read_turn(self._turn_records(app, {"chat_id": chat, "run_id": run, "turn": turn, "fingerprint": fingerprint or None}),
                                      fingerprint)
            if state.conflict:
                raise reading.turn_conflict(chat, turn)
            why = "turn %.80s of chat %.80s has no response yet: %s" % (turn, chat, state.missing())
            return state.response or waiting.Pending(why, not state.claimed, state.questions)

        return waiting.until(self._nats, self._subjects.events_of_turn(app, chat, run, turn), timeout, on_question, read)

    def await_message(self, *, chat, id, app=None, run=None, workflow="", agent="user", content=None, turn=None, user_id=None,
                      context_variables=None, timeout=60, on_question=None, finish_reason=None, sequence=None):
        """Waits until all that follows from a message is stored, and returns the data of its events, None where there is none: {text,
        response, output, updates, handoff}. It takes the ids alone, or what the publish has got: then an id with other content is a
        ConflictError. A turn that fails has no response if its workflow sends none to failures. on_question is as in wait."""
        app, digest = app or self._app, ""
        _require("message", chat=chat, id=id)
        if content is not None:
            _require("message", workflow=workflow)
            digest = _message_fingerprint(wire.name(workflow), wire.name(agent), content, turn or id, user_id, context_variables)
        wait = waiting.MessageWait(self._subjects, app, chat, run, id, digest, lambda request: self._turn_records(app, request))
        return waiting.until(self._nats, wait.subject, timeout, on_question, wait.read, wait.relevant)

    def answer(self, *, chat, tool_call_id, value, app=None, user_id=None, run=None, workflow=None, subject=None, timeout=10):
        """Answers a question and returns the verdict: {status, code, message, …}, which need not be an acceptance. With workflow
        and subject of the question no worker is needed to look it up."""
        app, end = app or self._app, time.monotonic() + timeout
        _require("answer", chat=chat, tool_call_id=tool_call_id)
        if not (workflow and subject):
            asked = self._question(app, chat, tool_call_id, run, end)
            if asked is None:
                return {"status": 404, "code": "unknown", "message": "There is no such question.", "tool_call_id": tool_call_id}
            workflow, subject, run = asked["workflow_name"], asked["answer_subject"], asked.get("run_id") or run
        verdict = self._subjects.verdict(app)
        replies = self._nats.subscribe(verdict)
        try:
            self._send(subject, wire.event("tool_call_response", {
                "tool_call_id": tool_call_id, "response": value, "run_id": run, "context": _context(app, chat, workflow, user_id),
            }), headers={"Oneturn-Reply": verdict})
            reply = replies.next(end - time.monotonic())
        finally:
            replies.close()
        if reply is None:
            raise UndecidedError("answer %.80s: it is stored and not decided yet: a worker of its workflow decides" % tool_call_id)
        return json.loads(reply.body)

    def cancel(self, *, chat, workflow, turn=None, tool_call_id=None, app=None, run=None, reason=None, user_id=None):
        """Requests the end of a turn, named by its key or by the tool_call_id of any of its events."""
        app, workflow = app or self._app, wire.name(workflow)
        _require("cancel request", chat=chat, workflow=workflow, turn=turn or tool_call_id)
        return self._send(self._subjects.inbound("cancel", app, workflow, chat), wire.event("cancel", {
            "turn": turn, "tool_call_id": tool_call_id, "run_id": run, "reason": reason, "context": _context(app, chat, workflow, user_id)}))

    def questions(self, *, chat=None, app=None):
        """Lists the open questions of a chat, or of the tenant without one."""
        return self._pages(app or self._app, "questions", {"chat_id": chat}, "questions")

    def history(self, *, chat, app=None, start=None):
        """Lists the stored events of a chat in order, from a sequence: {sequence, kind, event, …}."""
        return self._pages(app or self._app, "history", {"chat_id": chat, "from": start}, "records")

    def context(self, *, chat, app=None, workflow=None):
        """Reads the context variables of a chat as they are now: {variables, set, last_speaker, messages, …}, by default with the
        declared ones of the workflow of its newest turn or message."""
        return json.loads(self._ask(app or self._app, "context", {"chat_id": chat, "workflow_name": workflow}).body)

    def fetch(self, value, *, app=None):
        """Fetches a payload or tool_args over 256 KiB, which an event replaces by {"$blob": …}; others are returned as they are."""
        if not (isinstance(value, dict) and isinstance(value.get("$blob"), str)):
            return value
        data, start = b"", None
        while len(data) <= value["size"]:
            reply = self._ask(app or self._app, "blob", {"blob": value["$blob"], "from": start})
            data, start = data + reply.body, int(reply.headers.get("Oneturn-Next") or 0)
            if start == 0:
                break
        if hashlib.sha256(data).hexdigest() != value["sha256"]:
            raise OneturnError("blob %s: its bytes do not match the event: fetch it again" % value["$blob"])
        return json.loads(data)

    def _turn_records(self, app, request):
        return self._pages(app, "turn", request, "records")

    def _question(self, app, chat, tool_call_id, run, end):
        """Looks up a question; None if there is none, and none comes from a turn that was published just now."""
        unknown, pause = min(end, time.monotonic() + UNKNOWN_FOR), 0.1
        while True:
            page = json.loads(self._ask(app, "questions", {"chat_id": chat, "tool_call_id": tool_call_id, "run_id": run}).body)
            if page["questions"]:
                return page["questions"][0]
            left = unknown - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(pause, left))
            pause *= 2

    def _pages(self, app, verb, request, key):
        while True:
            page = json.loads(self._ask(app, verb, request).body)
            yield from page[key]
            if not page.get("next"):
                return
            request = {**request, "from": page["next"]}

    def _ask(self, app, verb, request):
        subject = self._subjects.api(app, verb)
        try:
            reply = self._nats.request(subject, json.dumps(wire.without_none(request)).encode(), timeout=REQUEST_TIMEOUT)
        except NoRespondersError as error:
            raise NoWorkerError("no worker answers on %s: start one" % subject) from error
        except (TimeoutError, ConnectionError) as error:
            raise NoWorkerError("no worker has answered on %s: try again: %s" % (subject, error)) from error
        if "Nats-Service-Error" in reply.headers:
            raise OneturnError("request API, %s: %s" % (subject, reply.headers["Nats-Service-Error"]))
        return reply

    def _publish(self, kind, app, workflow, chat, ids, digest, data):
        subject = self._subjects.inbound(kind, app, workflow, chat)
        return self._send(subject, wire.event(kind, data), headers={"Nats-Msg-Id": wire.message_id(self._subjects.pool, kind, ids, digest)})

    def _send(self, subject, body, headers=None):
        """Stores a message; without a reply it is sent again, which is harmless."""
        for left in reversed(range(PUBLISH_TRIES)):
            try:
                reply = json.loads(self._nats.request(subject, body, headers, REQUEST_TIMEOUT).body)
                break
            except NoRespondersError as error:
                raise OneturnError("publish to %s: no stream stores it: start a worker, or run turnctl provision" % subject) from error
            except (TimeoutError, ConnectionError):
                if not left:
                    raise
        if "error" in reply:
            too_large = reply["error"].get("err_code") == MESSAGE_TOO_LARGE
            raise (ValueError if too_large else OneturnError)("publish to %s: %s" % (subject, reply["error"].get("description", reply["error"])))
        return {"stream": reply["stream"], "seq": reply["seq"], "duplicate": reply.get("duplicate", False)}


def _message_fingerprint(workflow, agent, content, turn, user_id, context_variables):
    """The fingerprint of a message. Workers find a user in the context variables, too."""
    user = user_id or (context_variables or {}).get("user_id") or ""
    return wire.fingerprint(workflow, agent, str(user), content, turn)


def _context(app, chat, workflow, user_id=None, sequence=None, context_variables=None):
    return wire.without_none({"app_id": app, "chat_id": chat, "workflow_name": workflow, "user_id": user_id, "turn_sequence": sequence,
                              "context_variables": context_variables})


def _require(what, **values):
    missing = [name for name, value in values.items() if not value]
    if missing:
        raise OneturnError("the %s has no %s: set it" % (what, ", no ".join(missing)))
