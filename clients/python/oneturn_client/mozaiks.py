"""attach publishes the structured outputs of a MozaiksAI process, which stays unchanged, and the texts of its agents.

The process has one dispatcher (mozaiksai.core.events.unified_event_dispatcher.get_event_dispatcher). Structured outputs
arrive by its event chat.structured_output_ready, from the text events and from the printed ones. Texts are not emitted: each
one passes the dispatcher's build_outbound_event_envelope before it is hidden or shown, so that method is wrapped.
"""

import asyncio
import collections
import logging
import secrets
import threading

from . import mozaiks_chats as chats
from . import mozaiks_events as events
from .client import Client
from .outbox import Outbox

log = logging.getLogger("oneturn")

TURN_EVENT = "chat.structured_output_ready"
RUN_EVENT = "chat.run_complete"
UNKNOWN_WORKFLOW = "the workflow of its chat is not known: give chat_of"


def attach(dispatcher, connection="nats://127.0.0.1:4222", **options):
    """Publishes what the process emits from now on; see Attachment. Never raises once it has returned."""
    return Attachment(dispatcher, connection, **options)


class Attachment:
    """What attach returns.

    connection     a URL, opened in a thread as soon as the server is there, what connect returns, or a Client
    app            tenant of chats without app_id; by default "default"
    take_over      whether oneturn replaces MozaiksAI's own automatic tools: if False both run them
    texts          whether texts of agents and users are published as well, for triggers, histories and handoffs
    chat_of        a function of a chat id that returns {app_id, workflow_name, user_id} for texts, or None; the default reads
                   them from the chat's connection, or from its last structured output
    run_of         a function of a chat id that returns the run id; by default a new one for each run that is noticed
    limit, limit_bytes   of messages that wait for the server
    on_lost        a function of a message and a reason, called for each message that is not published
    **options      of connect, and of Client: pool, prefix
    """

    def __init__(self, dispatcher, connection="nats://127.0.0.1:4222", *, app="default", take_over=True, texts=True, chat_of=None, run_of=None,
                 limit=10_000, limit_bytes=64 << 20, on_lost=None, **options):
        self._dispatcher, self._app, self._lock = dispatcher, app, threading.RLock()
        self._chats = chats.Chats(app, chat_of or chats.connection_of, run_of, secrets.token_hex(4), self._lose_text)
        client = connection if isinstance(connection, Client) else lambda: Client(connection, app=app, **options)
        self._outbox = Outbox(client, limit=limit, limit_bytes=limit_bytes, on_lost=on_lost)
        self._counts, self._detached = collections.Counter(), False
        self._handlers, self._own, self._build = getattr(dispatcher, "_event_handlers", {}), None, None
        dispatcher.register_handler(TURN_EVENT, self._on_turn)
        dispatcher.register_handler(RUN_EVENT, self._on_run_complete)
        if take_over:
            self._take_over()
        if texts:
            self._wrap()

    @property
    def counts(self):
        """turns, texts and user_messages that were taken; sent, waiting and lost of them; repeated: announced twice by the
        process; replaced: the text that the process shows in place of a structured output; internal: signals and other chats."""
        return {**dict.fromkeys(("turns", "texts", "user_messages", "repeated", "replaced", "internal"), 0), **self._counts,
                "sent": self._outbox.sent, "lost": self._outbox.lost, "waiting": len(self._outbox) + self._chats.held()}

    def flush(self, timeout=5):
        """Waits until all is published, and returns whether it is."""
        return self._outbox.flush(timeout)

    def detach(self, timeout=5):
        """Ends the attachment: the dispatcher is as before, and what waits is published, for the timeout in seconds."""
        self._detached = True
        for name, handler in ((TURN_EVENT, self._on_turn), (RUN_EVENT, self._on_run_complete)):
            if handler in self._handlers.get(name, ()):
                self._handlers[name].remove(handler)
        if self._own is not None:
            self._handlers[TURN_EVENT].insert(0, self._own)
        if self._build is not None and self._dispatcher.__dict__.get("build_outbound_event_envelope") is self._build:
            del self._dispatcher.build_outbound_event_envelope
        with self._lock:
            self._chats.forget_all()
        self._outbox.close(timeout)

    def _take_over(self):
        """Takes MozaiksAI's own handler of automatic tools away: each tool would run twice."""
        owner = getattr(self._dispatcher, "_auto_tool_handler", None)
        for handler in list(self._handlers.get(TURN_EVENT, ())):
            if owner is not None and getattr(handler, "__self__", None) is owner:
                self._handlers[TURN_EVENT].remove(handler)
                self._own = handler
                return
        log.warning("oneturn: this dispatcher has no automatic tools to replace; if the process runs them elsewhere, they run twice")

    def _wrap(self):
        original = getattr(self._dispatcher, "build_outbound_event_envelope", None)
        if original is None:
            log.warning("oneturn: this dispatcher has no build_outbound_event_envelope, so texts are not published, only structured outputs")
            return

        def build_outbound_event_envelope(*args, **kwargs):
            event = kwargs.get("raw_event", args[0] if args else None)
            if not self._detached:
                text = self._guarded(events.read_text, event, kwargs.get("chat_id"), kwargs.get("workflow_name"))  # before it is changed
                if text:
                    self._soon(text)
            return original(*args, **kwargs)

        self._build = self._dispatcher.build_outbound_event_envelope = build_outbound_event_envelope

    def _soon(self, text):
        """Handles a text after what the loop has scheduled already: the structured output of the same message is emitted by a
        task that was created before."""
        try:
            asyncio.get_running_loop().call_soon(self._guarded, self._take_text, text)
        except RuntimeError:  # no loop runs
            self._guarded(self._take_text, text)

    def _on_turn(self, event):
        self._guarded(self._take_turn, event)

    def _on_run_complete(self, event):
        self._guarded(self._complete_run, event)

    def _guarded(self, handle, *args):
        """Calls a function; its errors stay here and are counted as lost."""
        try:
            with self._lock:
                return handle(*args)
        except Exception as error:
            self._outbox.lose(events.Message("event", "", "", "", b""), "%s: %r" % (handle.__name__, error))

    def _take_turn(self, event):
        turn = events.read_turn(event)
        chat = self._chats.of(turn.chat)
        chat.learn(event.get("context") or {})
        chat.notice(turn.sequence)
        if chat.is_repeated(turn):
            self._counts["repeated"] += 1
            return
        self._send_held(chat)
        self._counts["turns"] += 1
        self._outbox.put(turn.message(chat.run, self._app))

    def _complete_run(self, event):
        chat = self._chats.of(str(event.get("chat_id") or ""))
        chat.learn(event)
        chat.complete()
        self._send_held(chat)

    def _take_text(self, text):
        if text.internal:
            self._counts["internal"] += 1
            return
        chat = self._chats.of(text.chat)
        self._chats.look_up(chat, text.workflow)
        chat.notice(text.sequence)
        what = chat.place(text)
        if what != "new":
            self._counts[what] += 1
            return
        self._counts["user_messages" if text.of_user else "texts"] += 1
        chat.held.append((text, chat.run, chat.number(text)))
        if not chat.workflow and self._chats.held() > chats.MOST_HELD:
            self._lose_text(chat.held.pop(0)[0])
        self._send_held(chat)

    def _lose_text(self, text):
        self._outbox.lose(text, UNKNOWN_WORKFLOW)

    def _send_held(self, chat):
        """Sends the texts of a chat, in order, once its workflow is known."""
        while chat.workflow and chat.held:
            text, run, number = chat.held.pop(0)
            self._outbox.put(text.message(run, number, chat.app, chat.workflow, chat.user))
