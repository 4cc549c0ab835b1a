"""What is known of the chats of a MozaiksAI process: their runs, and what was published."""

import collections
import sys

MOST_CHATS = 10_000
MOST_HELD = 1_000  # texts of all chats that wait until the workflow of their chat is known
MOST_TURNS = 1_000  # of a run
TRANSPORTS = ("mozaiksai.core.transport.simple_transport", "core.transport.simple_transport")


def connection_of(chat):
    """The connection of a chat in MozaiksAI's transport: {app_id, workflow_name, user_id, …}; None without one."""
    for name in TRANSPORTS:
        transport = getattr(getattr(sys.modules.get(name), "SimpleTransport", None), "_instance", None)
        found = getattr(transport, "connections", {}).get(chat)
        if found:
            return found
    return None


class Chats:
    def __init__(self, app, chat_of, run_of, epoch, lose):
        self._app, self._chat_of, self._run_of, self._epoch, self._lose = app, chat_of, run_of, epoch, lose
        self._chats = collections.OrderedDict()
        self._started = 0

    def of(self, name):
        chat = self._chats.get(name)
        if chat is None:
            chat = self._chats[name] = Chat(name, self._app, self._new_run)
            if len(self._chats) > MOST_CHATS:
                self._forget()
        self._chats.move_to_end(name)
        return chat

    def look_up(self, chat, workflow=""):
        """Learns what a text does not have: MozaiksAI knows it for chats with a connection."""
        chat.learn({"workflow_name": workflow})
        chat.learn(self._chat_of(chat.name) or {})

    def held(self):
        return sum(len(chat.held) for chat in self._chats.values())

    def forget_all(self):
        while self._chats:
            self._forget()

    def _forget(self):
        """Forgets the chat that was heard of least recently, with the texts that wait."""
        _, chat = self._chats.popitem(last=False)
        for text, _, _ in chat.held:
            self._lose(text)

    def _new_run(self, chat):
        if self._run_of:
            return self._run_of(chat)
        self._started += 1
        return "%s-%d" % (self._epoch, self._started)


class Chat:
    """One chat. A run begins when the process starts, after the last one is complete, and when sequences begin again: the keys
    of MozaiksAI's turns are the same in each run."""

    def __init__(self, name, app, new_run):
        self.name, self.app, self.workflow, self.user, self.held = name, app, "", "", []
        self._new_run = new_run
        self._begin()

    def _begin(self):
        self.run = self._new_run(self.name)
        self._sequence, self._complete, self._texts = None, False, 0
        self._turns = collections.OrderedDict()  # key → digest, live
        self._shown = {}  # agent → sequence and text that are shown in place of its structured output
        self._last = None  # text

    def learn(self, known):
        """Takes over what an event or a connection has: app_id, workflow_name, user_id."""
        variables = known.get("context_variables")
        user = known.get("user_id") or (variables.get("user_id") if isinstance(variables, dict) else None)
        self.app = str(known.get("app_id") or known.get("enterprise_id") or self.app)
        self.workflow = str(known.get("workflow_name") or self.workflow)
        self.user = str(user or self.user)

    def notice(self, sequence):
        """Begins a run, if this event cannot be of the run so far."""
        again = sequence is not None and self._sequence is not None and sequence < self._sequence
        if self._complete or again:
            self._begin()
        if sequence is not None:
            self._sequence = sequence

    def complete(self):
        self._complete = True

    def is_repeated(self, turn):
        """Whether both producers have announced the same turn: the second one has validated its data, which may differ."""
        before = self._turns.get(turn.key)
        if before and (before[0] == turn.digest or before[1] and not turn.live):
            return True
        self._turns[turn.key] = (turn.digest, turn.live)
        if len(self._turns) > MOST_TURNS:
            self._turns.popitem(last=False)
        self._shown[turn.agent] = (turn.sequence, turn.display())
        return False

    def place(self, text):
        """new, or why a text is not a message: replaced, what is shown in place of a structured output; repeated."""
        sequence, shown = self._shown.get(text.agent, (None, None))
        if text.sequence is not None and text.sequence == sequence:
            return "replaced"
        if text.sequence is None and isinstance(text.content, str) and text.content.strip() == shown:
            del self._shown[text.agent]
            return "replaced"
        before, self._last = self._last, text
        if before and before.agent == text.agent:
            if text.sequence is None and before.sequence is not None and before.content == text.content:
                self._last = None  # of the second producer: once
                return "repeated"
            if text.sequence is not None and text.sequence == before.sequence:
                return "repeated"
        return "new"

    def number(self, text):
        """The part of a message id that is unique in the run."""
        if text.sequence is not None:
            return text.sequence
        self._texts += 1
        return "n%d" % self._texts
