"""A MozaiksAI process as far as attach sees it: the dispatcher, the transport, and the two producers of structured outputs."""

import asyncio
import inspect
import types
import uuid


class AutoToolEventHandler:
    def __init__(self):
        self.ran = []

    async def handle_structured_output_ready(self, event):
        self.ran.append(event["turn_idempotency_key"])


class Dispatcher:
    def __init__(self):
        self._event_handlers = {}
        self._auto_tool_handler = AutoToolEventHandler()
        self.coordinated = []
        self.register_handler("chat.structured_output_ready", self._auto_tool_handler.handle_structured_output_ready)
        self.register_handler("chat.structured_output_ready", lambda event: self.coordinated.append(event["turn_idempotency_key"]))

    def register_handler(self, event_type, handler):
        self._event_handlers.setdefault(event_type, []).append(handler)

    async def emit(self, event_type, payload):
        for listener in list(self._event_handlers.get(event_type, [])):
            result = listener(payload)
            if inspect.isawaitable(result):
                asyncio.create_task(result)

    def build_outbound_event_envelope(self, *, raw_event, chat_id, get_sequence_cb=None, workflow_name=None):
        if not (isinstance(raw_event, dict) and "kind" in raw_event):
            return None
        if workflow_name and get_sequence_cb:
            raw_event["sequence"] = get_sequence_cb(chat_id)  # the transport's own count
        return {"type": "chat." + raw_event["kind"], "data": raw_event, "timestamp": "…"}


class Process:
    """One workflow run after the other in one chat, as the orchestration streams the events of AG2."""

    def __init__(self, chat, *, app="default", workflow="Clients", user="u1", connected=True):
        self.dispatcher, self.chat, self.app, self.workflow, self.user = Dispatcher(), chat, app, workflow, user
        self.connections = {chat: {"app_id": app, "workflow_name": workflow, "user_id": user}} if connected else {}
        self.sequence, self.sent = 0, []

    def chat_of(self, chat):
        return self.connections.get(chat)

    async def run(self, *messages):
        """The events of a run: ("text", agent, content), ("output", agent, model, data), ("printed", agent, model, data, validated)."""
        self.sequence = 0
        for kind, *message in messages:
            self.sequence += 2
            await getattr(self, kind)(*message)
            await asyncio.sleep(0)
        await self.dispatcher.emit("chat.run_complete", {"chat_id": self.chat, "app_id": self.app, "workflow_name": self.workflow, "status": "completed"})
        await asyncio.sleep(0)

    async def text(self, agent, content):
        await self._send({"kind": "text", "agent": agent, "content": content, "metadata": {"source": "ag2_textevent", "sequence": self.sequence}})

    async def output(self, agent, model, data):
        event = self._event(agent, model, data)
        event["_pattern_context_ref"] = types.SimpleNamespace(data={})  # a live object
        asyncio.create_task(self.dispatcher.emit("chat.structured_output_ready", event))
        await self.text(agent, data.get("agent_message") or "%s prepared structured output." % agent)

    async def printed(self, agent, model, data, validated):
        """A printed event, after the text event of the same message."""
        await self.output(agent, model, data)
        asyncio.create_task(self.dispatcher.emit("chat.structured_output_ready", self._event(agent, model, validated)))
        await self._send({"kind": "print", "agent": agent, "content": validated.get("agent_message") or "%s prepared structured output." % agent})

    def _event(self, agent, model, data):
        key = "turn-" + uuid.uuid5(uuid.NAMESPACE_URL, "%s:%d" % (self.chat, self.sequence)).hex
        context = {"chat_id": self.chat, "app_id": self.app, "workflow_name": self.workflow, "turn_sequence": self.sequence, "agent_name": agent,
                   "context_variables": {"user_id": self.user, "plan": "basic"}}
        return {"kind": "structured_output_ready", "agent": agent, "agent_name": agent, "model_name": model, "structured_data": data,
                "auto_tool_mode": True, "context": context, "turn_idempotency_key": key}

    async def _send(self, event):
        connection = self.connections.get(self.chat, {})
        self.sent.append(self.dispatcher.build_outbound_event_envelope(
            raw_event=event, chat_id=self.chat, get_sequence_cb=lambda chat: len(self.sent) + 1, workflow_name=connection.get("workflow_name")))
        event["content"] = event["content"][:800]  # as for agents that are not shown
