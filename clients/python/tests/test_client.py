"""The client against a real worker with an embedded server, by each NATS library that is installed."""

import time
import unittest

from oneturn_client import Client, ConflictError, NoWorkerError, OneturnError, UnfinishedError, connect, is_shown, nats_py

from .worker import Worker

LIBRARIES = ["socket"] + (["nats-py"] if nats_py.installed() else [])


def setUpModule():
    global worker
    worker = Worker("--park-after", "200ms")


def tearDownModule():
    worker.stop()


class ClientTest:
    transport = ""

    @classmethod
    def setUpClass(cls):
        cls.nats = connect(worker.url, library=cls.transport)
        cls.client = Client(cls.nats)

    @classmethod
    def tearDownClass(cls):
        cls.nats.close()

    def chat(self):
        return "%s %s" % (self.transport, self.id())

    def greeting(self, turn, name, **more):
        return {"chat": self.chat(), "turn": turn, "workflow": "Clients", "agent": "Greeter", "model": "Greeting", "data": {"name": name}, **more}

    def test_a_turn_gets_one_response_however_often_it_is_published(self):
        turn = self.greeting("once", "Ada", user_id="u1", sequence=3, context_variables={"plan": "basic"})
        self.assertEqual(self.client.publish_turn(**turn)["stream"], "ONETURN_IN")
        self.assertTrue(self.client.publish_turn(**turn)["duplicate"])
        response = self.client.run_turn(**turn)
        self.assertEqual((response["content"], response["success"]), ("Hello, Ada!", True))
        self.assertEqual([record["kind"] for record in self.client.history(chat=self.chat())], ["tool_call", "tool_response"])

    def test_the_same_key_of_another_run_is_another_turn(self):
        for run in ("r1", "r 2"):
            self.assertEqual(self.client.run_turn(**self.greeting("runs", run, run=run))["content"], "Hello, %s!" % run)

    def test_ids_that_are_no_subject_tokens_reach_their_turn(self):
        for chat in ("a.b *>" + self.transport, "-", "ä" * 100, "x\U0001F600"):
            self.assertEqual(self.client.run_turn(**{**self.greeting("t.*-é", "Ada"), "chat": chat})["chat_id"], chat)

    def test_other_data_under_a_used_key_is_a_conflict(self):
        self.client.run_turn(**self.greeting("taken", "Ada"))
        with self.assertRaises(ConflictError):
            self.client.run_turn(**self.greeting("taken", "Bob"))
        self.assertEqual(self.client.wait(chat=self.chat(), turn="taken")["content"], "Hello, Ada!")

    def test_the_fingerprint_is_the_workers_whatever_the_data_is(self):
        data = {"name": "\x01\b\"\\é\u2028\U0001F600\x7f", "\U0001F600": 1, "\uFFFD": [1e21, 1.5, -0.0, 10**30, 5e-7, None, True]}
        response = self.client.run_turn(**self.greeting("odd", "", data=data), timeout=15)  # a difference would be a conflict
        self.assertRegex(response["content"], "^Hello, ")

    def test_data_that_does_not_match_its_model_gets_feedback(self):
        response = self.client.run_turn(**self.greeting("bad", 7))
        self.assertEqual(response["code"], "validation_failed")
        self.assertIn("name", response["payload"]["feedback"])

    def test_data_that_json_does_not_have_is_refused(self):
        for value in (float("nan"), object(), "\ud800"):
            with self.assertRaises((ValueError, TypeError)):
                self.client.publish_turn(**self.greeting("t", value))

    def test_a_question_is_reported_once_answered_and_decided(self):
        turn = {"chat": self.chat(), "turn": "post-1", "workflow": "Clients", "agent": "Editor", "model": "Post", "data": {"title": "News"}, "run": "r1"}
        asked, verdicts = [], []

        def answer(question):
            asked.append(question["payload"]["title"])
            named = {"chat": self.chat(), "tool_call_id": question["tool_call_id"], "run": "r1"}
            verdicts.append(self.client.answer(**named, value={})["code"])
            verdicts.append(self.client.answer(**named, value={"approved": True}, workflow="Clients", subject=question["answer"]["subject"])["code"])
            verdicts.append(self.client.answer(**named, value={"approved": False})["code"])

        self.assertEqual(self.client.run_turn(**turn, on_question=answer)["content"], "published")
        self.assertEqual((asked, verdicts), (["News"], ["invalid", "accepted", "already_answered"]))

    def test_open_questions_are_listed_and_an_unknown_one_is_refused(self):
        turn = {"chat": self.chat(), "turn": "post-2", "workflow": "Clients", "agent": "Editor", "model": "Post", "data": {"title": "Later"}}
        self.client.publish_turn(**turn)
        end = time.monotonic() + 20
        while not (found := list(self.client.questions(chat=self.chat()))):
            self.assertLess(time.monotonic(), end)
        self.assertEqual([question["tool_call_id"] for question in found], ["post-2/1"])
        self.assertEqual(self.client.answer(chat=self.chat(), tool_call_id="none/1", value=1)["code"], "unknown")

    def test_the_object_in_an_agents_message_runs_its_tool(self):
        message = {"chat": self.chat(), "id": "m1", "workflow": "Clients", "agent": "Greeter", "content": 'Sure:\n{"name": "Ada",}', "finish_reason": "stop",
                   "run": "r1", "sequence": 4}
        self.client.publish_message(**message)
        self.assertEqual(self.client.wait(chat=self.chat(), turn="m1", run="r1")["content"], "Hello, Ada!")
        self.client.publish_message(**{**message, "id": "m2", "content": {"name": "Bob"}, "turn": "t2", "sequence": 6})
        self.assertEqual(self.client.wait(chat=self.chat(), turn="t2", run="r1")["content"], "Hello, Bob!")
        self.client.publish_message(**{**message, "id": "m3", "content": '{"name": "Ad', "finish_reason": "length", "sequence": 8})
        response = self.client.wait(chat=self.chat(), turn="m3", run="r1")
        self.assertEqual(response["code"], "validation_failed")
        self.assertIn("feedback", response["payload"])
        self.assertEqual([record["kind"] for record in self.client.history(chat=self.chat())], ["text", "tool_call", "tool_response"] * 3)

    def test_texts_are_stored_and_hidden_ones_are_not_shown(self):
        chat = {"chat": self.chat(), "workflow": "Clients"}
        self.client.publish_user_message(**chat, id="m1", user_id="u1", content="Automate my posts")
        self.client.publish_message(**chat, id="m2", agent="Interviewer", content="NEXT")
        end = time.monotonic() + 20
        while len(found := [record["event"] for record in self.client.history(chat=self.chat())]) < 3:
            self.assertLess(time.monotonic(), end, found)
        texts = {event["type"]: event for event in found if event["type"] in ("chat.text", "chat.user_message")}
        self.assertTrue(is_shown(texts["chat.user_message"]))
        self.assertFalse(is_shown(texts["chat.text"]))
        updates = [event["data"] for event in found if event["type"] == "chat.context_update"]
        self.assertEqual([(update["variable"], update["value"]) for update in updates], [("interview_complete", True)])
        context = self.client.context(chat=self.chat())
        self.assertEqual((context["variables"]["interview_complete"], context["last_speaker"]), (True, "Interviewer"))

    def test_a_turn_is_cancelled(self):
        turn = {"chat": self.chat(), "turn": "nap-1", "workflow": "Clients", "agent": "Sleeper", "model": "Nap", "data": {"seconds": 60}}
        self.client.publish_turn(**turn)
        self.client.cancel(chat=self.chat(), workflow="Clients", turn="nap-1", reason="the user left")
        self.assertEqual(self.client.wait(chat=self.chat(), turn="nap-1")["code"], "cancelled")

    def test_a_large_payload_is_fetched(self):
        data = {"text": "0123456789", "count": 70_000}
        payload = self.client.run_turn(chat=self.chat(), turn="copy-1", workflow="Clients", agent="Printer", model="Copies", data=data)["payload"]
        self.assertEqual(len(self.client.fetch(payload)["text"]), 700_000)
        with self.assertRaisesRegex(OneturnError, "do not match"):
            self.client.fetch({**payload, "sha256": "00"})

    def test_a_message_that_is_too_large_is_refused(self):
        with self.assertRaisesRegex(ValueError, "publish to oneturn.in"):
            self.client.publish_turn(**self.greeting("large", "x" * 9_000_000))
        self.assertEqual(self.client.run_turn(**self.greeting("after", "Ada"))["content"], "Hello, Ada!")

    def test_a_wait_ends_in_time_and_names_what_is_missing(self):
        with self.assertRaisesRegex(UnfinishedError, "no worker has claimed it"):
            self.client.wait(chat=self.chat(), turn="t", timeout=0.3)

    def test_without_a_worker_or_a_stream_the_error_names_the_fix(self):
        other = Client(self.nats, prefix="other")
        with self.assertRaisesRegex(OneturnError, "no stream stores it: start a worker, or run turnctl provision"):
            other.publish_turn(**self.greeting("t", "Ada"))
        with self.assertRaises(NoWorkerError):
            other.wait(chat="c", turn="t", timeout=0.2)
        with self.assertRaisesRegex(OneturnError, "has no workflow: set it"):
            self.client.publish_turn(**{**self.greeting("t", "Ada"), "workflow": ""})


class SocketClientTest(ClientTest, unittest.TestCase):
    transport = "socket"


@unittest.skipUnless("nats-py" in LIBRARIES, "nats-py is not installed")
class NatsPyClientTest(ClientTest, unittest.TestCase):
    transport = "nats-py"
