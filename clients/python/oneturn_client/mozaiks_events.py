"""Events of a MozaiksAI process, and the messages that they become. No I/O."""

import datetime
import enum
import hashlib
import json
import typing

RESUME_SIGNAL = "[SYSTEM_RESUME_SIGNAL]"  # in a text of MozaiksAI to itself
GENERAL_CHAT = "general_agent"  # metadata.source of chats that have no workflow
ANONYMOUS = "anonymous"  # MozaiksAI's user without sign-in


class Message(typing.NamedTuple):
    """What is published, as it is."""

    kind: str
    app: str
    workflow: str
    chat: str
    body: bytes

    def publish(self, client):
        client.publish_raw(self.kind, self.body, app=self.app, workflow=self.workflow, chat=self.chat)

    def __str__(self):
        return "%s of chat %r" % (self.kind, self.chat)


class Turn(typing.NamedTuple):
    chat: str
    agent: str
    key: str
    sequence: typing.Optional[int]
    event: dict
    digest: str  # of the structured data
    live: bool  # the event refers to the live context: it is of the producer for text events

    def display(self):
        """The text that MozaiksAI shows in place of the structured output."""
        data = self.event.get("structured_data")
        text = data.get("agent_message") if isinstance(data, dict) else None
        return text.strip() if isinstance(text, str) and text.strip() else "%s prepared structured output." % self.agent

    def message(self, run, default_app):
        context = self.event.get("context") or {}
        app = str(context.get("app_id") or context.get("enterprise_id") or default_app)
        event = {**self.event, "context": {**context, "app_id": app}}
        if run:
            event["run_id"] = run
        return Message("structured_output_ready", app, str(context.get("workflow_name") or ""), self.chat, envelope("structured_output_ready", event))


class Text(typing.NamedTuple):
    chat: str
    agent: str
    content: typing.Any
    sequence: typing.Optional[int]  # of the AG2 event, the same as of a structured output
    workflow: str
    internal: bool  # not a message of a workflow

    def __str__(self):
        return "text of %s in chat %r" % (self.agent, self.chat)

    @property
    def of_user(self):
        return self.agent.lower() == "user"

    def message(self, run, number, app, workflow, user):
        context = {"app_id": app, "chat_id": self.chat, "workflow_name": workflow, "user_id": user}
        identity = "text-%s" % number
        if self.of_user:
            data = {"id": identity, "chat_id": self.chat, "user_id": user or ANONYMOUS, "run_id": run, "content": self.content, "context": context}
        else:
            data = {"agent": self.agent, "content": self.content, "message_id": identity, "run_id": run, "turn_sequence": self.sequence,
                    "context": context}
        kind = "user_message" if self.of_user else "agent_message"
        return Message(kind, app, workflow, self.chat, envelope(kind, {key: value for key, value in data.items() if value is not None}))


def read_turn(event):
    """A structured output, of either producer. Members with a leading _ are live objects of the process."""
    live = "_pattern_context_ref" in event
    event = {key: value for key, value in event.items() if not key.startswith("_")}
    context = event.get("context") or {}
    return Turn(str(context.get("chat_id") or ""), str(event.get("agent_name") or event.get("agent") or ""), str(event.get("turn_idempotency_key") or ""),
                _number(context.get("turn_sequence")), event, hashlib.sha256(encode(event.get("structured_data"))).hexdigest(), live)


def read_text(event, chat=None, workflow=None):
    """A text on its way to the user; None for other events, and for what is sent again after a reconnect."""
    if not isinstance(event, dict) or str(event.get("kind")) not in ("text", "print", "chat.text", "chat.print") or event.get("replay"):
        return None
    content = event.get("content")
    metadata = event["metadata"] if isinstance(event.get("metadata"), dict) else {}
    if not isinstance(content, (str, dict, list)):
        content = "" if content is None else str(content)
    internal = metadata.get("source") == GENERAL_CHAT or isinstance(content, str) and (RESUME_SIGNAL in content or not content.strip())
    sequence = event.get("sequence") if event.get("source") == "textevent_fallback" else metadata.get("sequence")
    agent = str(event.get("agent") or event.get("sender") or "Agent")
    return Text(str(chat or event.get("chat_id") or ""), agent, content, _number(sequence), str(workflow or ""), internal)


def envelope(kind, data):
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return encode({"type": "chat." + kind, "data": {**data, "kind": kind}, "timestamp": now})


def encode(value):
    """JSON of what the process has. NaN and unpaired surrogates stay as they are: the worker then answers with their position."""
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, default=_plain, separators=(",", ":")).encode()


def _plain(value):
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (set, frozenset)):
        return list(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return str(value)


def _number(value):
    return value if isinstance(value, int) and not isinstance(value, bool) else None
