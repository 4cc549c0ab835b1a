"""The client of oneturn: a producer of turns and messages. docs/wire-contract.md has the subjects and messages.

client.py      Client: publishes, waits, answers, cancels
waiting.py     waits for a turn or message; reading.py: what their records mean
errors.py      the errors
mozaiks.py     attach: publishes what a MozaiksAI process emits; mozaiks_chats.py, mozaiks_events.py: its runs, its events
outbox.py      the bounded queue of attach and the thread that publishes it
frontend.py    what a frontend shows of an event
wire.py        subjects, tokens, fingerprints, bodies; no I/O
transport.py   connect, and the errors of connections
nats_socket.py a NATS connection with the standard library alone; nats_protocol.py: its bytes
nats_py.py     a NATS connection by nats-py, which is used where it is installed
"""

from .client import Client
from .errors import ConflictError, NoWorkerError, OneturnError, UndecidedError, UnfinishedError
from .frontend import component_payload, is_shown
from .mozaiks import Attachment, attach
from .transport import NoRespondersError, connect

__all__ = [
    "Attachment", "Client", "ConflictError", "NoRespondersError", "NoWorkerError", "OneturnError", "UndecidedError",
    "UnfinishedError", "attach", "component_payload", "connect", "is_shown",
]
