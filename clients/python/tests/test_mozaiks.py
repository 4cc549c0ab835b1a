"""attach on a process that behaves as MozaiksAI does, against a real worker."""

import asyncio
import datetime
import enum
import json
import logging
import pathlib
import subprocess
import sys
import time
import types
import unittest

from oneturn_client import Client, attach, connect

from .mozaiks import Process
from .worker import Worker, free_port


def setUpModule():
    global worker
    worker = Worker()
    logging.getLogger("oneturn").setLevel(logging.CRITICAL)


def tearDownModule():
    worker.stop()


class AttachTest(unittest.TestCase):
    def setUp(self):
        self.nats = connect(worker.url, library="socket")
        self.client = Client(self.nats)
        self.addCleanup(self.nats.close)
        self.lost = []

    def attach(self, process, connection=None, **options):
        options = {"chat_of": process.chat_of, "on_lost": lambda message, reason: self.lost.append((str(message), reason)), **options}
        attachment = attach(process.dispatcher, connection or worker.url, **options)
        self.addCleanup(attachment.detach, 0)
        return attachment

    def responses(self, process, attachment):
        """Turn keys and contents of the responses in the process's chat, once all turns have one."""
        self.assertTrue(attachment.flush(10))
        calls = []
        for _ in range(100):
            records = [record["event"]["data"] for record in self.client.history(chat=process.chat, app=process.app)]
            calls = [data for data in records if data["kind"] == "tool_call"]
            ended = [data for data in records if data["kind"] == "tool_response"]
            if len(calls) == len(ended) == attachment.counts["turns"]:
                return [(data["turn"], data["content"]) for data in ended]
            time.sleep(0.05)
        self.fail("%d of %d turns have a response" % (len(calls), attachment.counts["turns"]))

    def stored(self, process, count):
        """The kind of each text in the history of the process's chat, and whether it is hidden."""
        for _ in range(100):
            found = [record["event"]["data"] for record in self.client.history(chat=process.chat, app=process.app)]
            texts = [(data["kind"], data["ui_hidden"]) for data in found if "ui_hidden" in data]
            if len(texts) == count:
                break
            time.sleep(0.05)
        return sorted(texts, key=lambda text: (text[0] != "user_message", text[1]))

    def inbound(self, kind, app="default"):
        subscription = self.nats.subscribe("oneturn.in.default.%s.%s.>" % (kind, app))
        self.nats.request("oneturn.api.default.history", b'{"chat_id":"none"}')  # the server has the subscription now
        self.addCleanup(subscription.close)
        return subscription

    def test_a_structured_output_runs_its_tool_here_and_no_longer_in_the_process(self):
        process = Process("here")
        attachment = self.attach(process)
        asyncio.run(process.run(("output", "Greeter", "Greeting", {"name": "Ada", "agent_message": "Greeting Ada"})))
        ((turn, content),) = self.responses(process, attachment)
        self.assertEqual(content, "Hello, Ada!")
        self.assertEqual(process.dispatcher._auto_tool_handler.ran, [])
        self.assertEqual(process.dispatcher.coordinated, [turn])  # other handlers stay
        self.assertEqual(attachment.counts, {"turns": 1, "texts": 0, "user_messages": 0, "repeated": 0, "replaced": 1, "internal": 0,
                                             "sent": 1, "lost": 0, "waiting": 0})

    def test_a_second_run_of_a_chat_runs_its_tools_though_its_turn_keys_are_the_same(self):
        process = Process("runs")
        attachment = self.attach(process)
        outputs = [("output", "Greeter", "Greeting", {"name": name}) for name in ("Ada", "Bob")]
        asyncio.run(process.run(*outputs))
        asyncio.run(process.run(*outputs))
        found = self.responses(process, attachment)
        self.assertEqual(sorted(content for _, content in found), sorted(["Hello, Ada!", "Hello, Bob!"] * 2))
        self.assertEqual(len({turn for turn, _ in found}), 2)

    def test_a_run_whose_end_was_not_announced_is_noticed_by_its_sequences(self):
        process = Process("restarted")
        attachment = self.attach(process, run_of=None)
        process.dispatcher._event_handlers.pop("chat.run_complete")
        for _ in range(2):
            asyncio.run(process.run(("text", "Narrator", "Hello"), ("output", "Greeter", "Greeting", {"name": "Ada"})))
        self.assertEqual(len(self.responses(process, attachment)), 2)

    def test_what_both_producers_announce_is_one_turn(self):
        process = Process("both")
        attachment = self.attach(process)
        asyncio.run(process.run(("printed", "Greeter", "Greeting", {"name": "Ada"}, {"name": "Ada", "language": None})))
        self.assertEqual([content for _, content in self.responses(process, attachment)], ["Hello, Ada!"])
        self.assertEqual((attachment.counts["repeated"], attachment.counts["replaced"]), (1, 2))

    def test_texts_of_agents_and_users_are_messages_and_signals_are_not(self):
        agents, users = self.inbound("agent_message", "acme"), self.inbound("user_message", "acme")
        process = Process("talk", app="acme")
        attachment = self.attach(process)
        asyncio.run(process.run(("text", "user", "Automate my posts"), ("text", "Interviewer", "x" * 900), ("text", "Interviewer", "NEXT"),
                                ("text", "Interviewer", "NEXT"), ("text", "system", "[SYSTEM_RESUME_SIGNAL]"), ("text", "Interviewer", "")))
        texts = [json.loads(agents.next(10).body)["data"] for _ in range(3)]
        run = texts[0]["run_id"]
        self.assertEqual([message["content"] for message in texts], ["x" * 900, "NEXT", "NEXT"])
        self.assertEqual(texts[1], {
            "kind": "agent_message", "agent": "Interviewer", "content": "NEXT", "message_id": "text-6", "run_id": run, "turn_sequence": 6,
            "context": {"app_id": "acme", "chat_id": "talk", "workflow_name": "Clients", "user_id": "u1"}})
        self.assertEqual(json.loads(users.next(10).body)["data"], {
            "kind": "user_message", "id": "text-2", "chat_id": "talk", "user_id": "u1", "run_id": run, "content": "Automate my posts",
            "context": {"app_id": "acme", "chat_id": "talk", "workflow_name": "Clients", "user_id": "u1"}})
        self.assertEqual(attachment.counts["internal"], 2)
        self.assertEqual(len(process.sent), 6)  # the process shows what it did before
        self.assertEqual(self.stored(process, 4), [("user_message", False), ("text", False), ("text", True), ("text", True)])

    def test_texts_wait_until_the_workflow_of_their_chat_is_known(self):
        agents = self.inbound("agent_message")
        process = Process("early", connected=False)
        attachment = self.attach(process)
        asyncio.run(process.text("Editor", "first"))
        self.assertEqual(attachment.counts["waiting"], 1)
        asyncio.run(process.run(("output", "Greeter", "Greeting", {"name": "Ada"})))
        self.assertEqual(json.loads(agents.next(10).body)["data"]["content"], "first")

    def test_the_connections_of_the_process_name_workflow_and_user(self):
        agents = self.inbound("agent_message", "acme")
        process = Process("connected", app="acme")
        transport = types.SimpleNamespace(SimpleTransport=types.SimpleNamespace(_instance=process))
        sys.modules["mozaiksai.core.transport.simple_transport"] = transport
        self.addCleanup(sys.modules.pop, "mozaiksai.core.transport.simple_transport")
        self.attach(process, chat_of=None)
        asyncio.run(process.text("Editor", "hello"))
        self.assertEqual(json.loads(agents.next(10).body)["data"]["context"]["user_id"], "u1")

    def test_values_that_only_python_has_become_json_and_bad_numbers_get_feedback(self):
        process = Process("values")
        attachment = self.attach(process)
        color = enum.Enum("Color", {"RED": "red"})
        odd = {"name": color.RED, "on": datetime.date(2026, 11, 28), "many": {1}, "other": object}
        asyncio.run(process.run(("output", "Greeter", "Greeting", odd), ("output", "Greeter", "Greeting", {"name": float("nan")})))
        contents = sorted(content for _, content in self.responses(process, attachment))  # H before T
        self.assertEqual(contents[0], "Hello, red!")
        self.assertRegex(contents[1], 'cannot be read at "/name"')

    def test_nothing_is_lost_while_the_server_is_away(self):
        port = free_port()
        process = Process("away")
        attachment = self.attach(process, "nats://127.0.0.1:%d" % port)
        asyncio.run(process.run(("output", "Greeter", "Greeting", {"name": "Ada"})))
        self.assertFalse(attachment.flush(0.2))
        late = Worker(port=port)
        self.addCleanup(late.stop)
        self.assertTrue(attachment.flush(20))
        with Client(late.url, library="socket") as client:
            (key,) = {record["event"]["data"]["turn"] for record in self.wait_history(client, "away")}
            self.assertTrue(key.startswith("turn-"))
        self.assertEqual(self.lost, [])

    def wait_history(self, client, chat):
        for _ in range(200):
            records = list(client.history(chat=chat))
            if len(records) == 2:
                return records
            time.sleep(0.05)
        self.fail("no response")

    def test_a_full_queue_loses_what_is_new_and_reports_it(self):
        process = Process("full")
        attachment = self.attach(process, "nats://127.0.0.1:%d" % free_port(), limit=2)
        asyncio.run(process.run(*(("output", "Greeter", "Greeting", {"name": name}) for name in "abc")))
        self.assertEqual((attachment.counts["waiting"], attachment.counts["lost"]), (2, 1))
        self.assertRegex(self.lost[0][1], "the queue is full")
        attachment.detach(0)
        self.assertEqual(len(self.lost), 3)

    def test_what_waits_is_published_when_the_process_ends(self):
        program = """
import asyncio
from oneturn_client import attach
from tests.mozaiks import Process
process = Process("ended")
attach(process.dispatcher, %r)
asyncio.run(process.run(("output", "Greeter", "Greeting", {"name": "Ada"})))
"""
        subprocess.run([sys.executable, "-c", program % worker.url], check=True, cwd=pathlib.Path(__file__).resolve().parents[1], timeout=60)
        self.assertEqual(self.wait_history(self.client, "ended")[1]["event"]["data"]["content"], "Hello, Ada!")

    def test_errors_stay_out_of_the_process_and_are_counted(self):
        process = Process("errors")

        def failing(*_):
            raise RuntimeError("in the callback")

        attachment = self.attach(process, chat_of=failing, on_lost=failing)
        circle = {}
        circle["circle"] = circle
        asyncio.run(process.run(("text", "Editor", "hello"), ("output", "Greeter", "Greeting", circle)))
        asyncio.run(process.dispatcher.emit("chat.structured_output_ready", {"turn_idempotency_key": "t", "context": "none"}))
        self.assertEqual(len(process.sent), 2)
        self.assertEqual(attachment.counts["lost"], 4)  # also the text that the circle was replaced by

    def test_detached_the_process_is_as_before(self):
        process = Process("detached")
        before = list(process.dispatcher._event_handlers["chat.structured_output_ready"])
        attachment = self.attach(process)
        attachment.detach()
        self.assertEqual(process.dispatcher._event_handlers["chat.structured_output_ready"], before)
        asyncio.run(process.run(("output", "Greeter", "Greeting", {"name": "Ada"})))
        self.assertEqual(len(process.dispatcher._auto_tool_handler.ran), 1)
        self.assertEqual(attachment.counts["turns"], 0)

    def test_texts_of_a_chat_without_a_workflow_are_lost_when_the_attachment_ends(self):
        process = Process("unknown", connected=False)
        attachment = self.attach(process)
        asyncio.run(process.text("Editor", "hello"))
        attachment.detach()
        self.assertEqual([message for message, _ in self.lost], ["text of Editor in chat 'unknown'"])

    def test_both_can_run_the_tools(self):
        process = Process("shadow")
        attachment = self.attach(process, take_over=False, texts=False)
        asyncio.run(process.run(("output", "Greeter", "Greeting", {"name": "Ada"})))
        self.assertEqual(len(self.responses(process, attachment)), 1)
        self.assertEqual(len(process.dispatcher._auto_tool_handler.ran), 1)
        self.assertEqual(attachment.counts["replaced"], 0)

    def test_a_message_without_the_right_to_publish_it_is_lost_and_others_are_not(self):
        process = Process("rights")
        attachment = self.attach(process, Client(Restricted(self.nats)))
        asyncio.run(process.run(("text", "Editor", "hello"), ("output", "Greeter", "Greeting", {"name": "Ada"})))
        self.assertEqual([content for _, content in self.responses(process, attachment)], ["Hello, Ada!"])
        self.assertEqual(self.lost, [("agent_message of chat 'rights'", "no right")])


class Restricted:
    """A connection of a user that may not publish messages of agents."""

    def __init__(self, nats):
        self._nats = nats

    def request(self, subject, *args):
        if "agent_message" in subject:
            raise PermissionError("no right")
        return self._nats.request(subject, *args)
