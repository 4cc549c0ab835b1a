"""The wait for all that follows from a message, against a real worker, by each NATS library that is installed."""

import unittest

from oneturn_client import Client, ConflictError, NoWorkerError, OneturnError, UnfinishedError, connect, reading

from .test_client import LIBRARIES
from .worker import Worker


def setUpModule():
    global worker
    worker = Worker("--park-after", "200ms")


def tearDownModule():
    worker.stop()


class MessageTest:
    transport = ""

    @classmethod
    def setUpClass(cls):
        cls.nats = connect(worker.url, library=cls.transport)
        cls.client = Client(cls.nats)

    @classmethod
    def tearDownClass(cls):
        cls.nats.close()

    def message(self, id, agent, content, **more):
        return {"chat": "%s %s" % (self.transport, self.id()), "id": id, "workflow": "Talks", "agent": agent, "content": content, "run": "r1", **more}

    def published(self, message, **options):
        if "agent" in message:
            self.client.publish_message(**message)
        else:
            self.client.publish_user_message(**message)
        return self.client.await_message(**message, **{"timeout": 20, **options})

    def of_user(self, id, content, **more):
        message = self.message(id, "", content, **more)
        del message["agent"]
        return message

    def test_a_wait_ends_with_the_last_record_that_follows_from_a_message(self):
        user = self.published(self.of_user("m1", "I want a shop.", user_id="ada"))
        self.assertEqual((user["text"]["content"], user["handoff"]["to"], user["response"], user["output"]), ("I want a shop.", "Interviewer", None, None))
        hidden = self.published(self.message("m2", "Interviewer", "NEXT", finish_reason="stop", sequence=2))
        self.assertEqual((hidden["text"]["ui_hidden"], hidden["handoff"]["to"]), (True, "Architect"))
        self.assertEqual([(update["variable"], update["value"]) for update in hidden["updates"]], [("complete", True)])
        message = self.message("m3", "Architect", "Here: {'title': 'Shop',}", turn="turn 3")
        turned = self.published(message)
        self.assertEqual((turned["response"]["turn"], turned["response"]["payload"]["message"], turned["handoff"]["to"]),
                         ("turn 3", "drawn: Shop", "terminate"))
        self.assertEqual(self.client.await_message(chat=message["chat"], id="m3", run="r1"), turned, "again, from what is stored")
        failed = self.published(self.message("m4", "Architect", "No plan today."))
        self.assertEqual((failed["response"]["code"], failed["handoff"]["to"]), ("validation_failed", "terminate"))
        output = self.published(self.message("m5", "Critic", {"title": "Shop"}))
        self.assertEqual((output["output"]["payload"], output["response"], output["handoff"]["to"]), ({"title": "Shop"}, None, None))

    def test_a_message_without_rules_and_triggers_is_its_text(self):
        outcome = self.published(self.message("m1", "Interviewer", "Hello.", workflow="Clients"))
        self.assertEqual(outcome.pop("text")["content"], "Hello.")
        self.assertEqual(outcome, {"response": None, "output": None, "updates": [], "handoff": None})

    def test_a_wait_for_a_corrected_message_ends_with_the_last_correction(self):
        outcome = self.published(self.message("c1", "Corrected", "No plan today."))
        self.assertEqual((outcome["response"]["turn"], outcome["response"]["payload"]["message"], outcome["handoff"]["to"]),
                         ("c1~2", "built: Shop", "terminate"))

    def test_a_wait_ends_without_a_response_if_the_workflow_sends_none_to_failures(self):
        outcome = self.published(self.message("m1", "Architect", "No plan today.", workflow="Quiet"))
        self.assertEqual((outcome["text"]["turn_idempotency_key"], outcome["response"]), ("m1", None))

    def test_other_content_under_a_used_id_is_a_conflict(self):
        first = self.message("taken", "Interviewer", "one")
        self.published(first)
        for other in (self.message("taken", "Interviewer", "two"), self.of_user("taken", "one", user_id="ada")):
            with self.assertRaisesRegex(ConflictError, "the id of the message"):
                self.published(other)
        self.assertEqual(self.client.await_message(chat=first["chat"], id="taken", run="r1")["text"]["content"], "one")

    def test_the_fingerprint_of_a_message_is_the_workers_whatever_it_has(self):
        odd = {"title": "é\u2028\U0001F600", "\U0001F600": 1, "\uFFFD": [1e21, 1.5, -0.0, 10**30, 5e-7, None, True]}
        self.published(self.message("odd 1", "Critic", odd, context_variables={"user_id": "ada"}))
        self.published({**self.message("odd 2", "Interviewer", "x", user_id="bob"), "chat": "x.y *>" + self.transport})
        self.published({**self.message("odd 3", "Interviewer", "x"), "run": None})

    def test_a_used_turn_key_with_other_data_is_a_conflict_and_the_number_of_a_text_is_not_taken_for_other_data(self):
        for workflow, agent, name in (("Clients", "Greeter", "name"), ("Talks", "Architect", "title")):
            def message(id, value):
                return self.message(workflow + id, agent, '{"%s": "%s", "more": 1.0}' % (name, value), workflow=workflow, turn=workflow)
            self.assertIn("Ada", self.published(message("m1", "Ada"))["response"]["payload"]["message"])
            self.assertIn("Ada", self.published(message("m2", "Ada"))["response"]["payload"]["message"], "the same data is the same turn")
            with self.assertRaisesRegex(ConflictError, "the key was used before"):
                self.published(message("m3", "Bob"))

    def test_a_used_turn_key_that_runs_with_other_data_has_its_own_response(self):
        def message(id, title):
            return self.message(id, "Architect", '{"title": "%s"}' % title, workflow="Quiet", turn="key")
        for id, title in (("k1", "one"), ("k2", "two")):
            self.assertEqual(self.published(message(id, title))["response"]["payload"]["message"], "drawn: " + title)
        first = self.client.await_message(chat=message("k1", "one")["chat"], id="k1", run="r1")
        self.assertEqual(first["response"]["payload"]["message"], "drawn: one")

    def test_questions_of_the_turn_of_a_message_are_reported_while_it_waits(self):
        message, asked = self.message("asks", "Architect", '{"title": "Ask"}'), []

        def answer(question):
            asked.append(question["payload"]["title"])
            verdict = self.client.answer(chat=message["chat"], run="r1", tool_call_id=question["tool_call_id"], value={})
            self.assertEqual(verdict["code"], "accepted")

        self.assertEqual(self.published(message, on_question=answer)["response"]["payload"]["message"], "drawn: Ask")
        self.assertEqual(asked, ["Ask"])

    def test_a_wait_for_a_message_names_what_is_missing(self):
        with self.assertRaisesRegex(UnfinishedError, "no worker has stored it"):
            self.client.await_message(chat="none", id="none", timeout=0.2)
        with self.assertRaisesRegex(UnfinishedError, "of its turn open, its tool runs, or waits for an answer"):
            self.published(self.message("open", "Architect", '{"title": "Ask"}'), timeout=2)
        with self.assertRaises(NoWorkerError):
            Client(self.nats, prefix="other").await_message(chat="c", id="m", timeout=0.2)

    def test_a_message_that_names_too_little_is_refused(self):
        with self.assertRaisesRegex(OneturnError, "the message has no id: set it"):
            self.client.await_message(chat="c", id="")
        with self.assertRaisesRegex(OneturnError, "the message has no workflow: set it"):
            self.client.await_message(chat="c", id="m", content="x")
        with self.assertRaisesRegex(OneturnError, "publish_user_message"):
            self.client.publish_message(**self.message("m", "user", "x"))

    def test_names_with_accents_are_one_name_in_either_spelling(self):
        text = self.published(self.message("m1", "Rene\u0301", "x", workflow="Cafe\u0301"), timeout=90)["text"]
        self.assertEqual((text["workflow_name"], text["agent"]), ("Caf\u00e9", "Ren\u00e9"))


class ReadingTest(unittest.TestCase):
    def test_records_that_are_older_than_the_text_are_left_of_an_earlier_message(self):
        def record(kind, data, **more):
            return {"kind": kind, "event": {"data": data}, **more}
        old = [record("context_update", {"variable": "old"}), record("structured_output", {"payload": "old"}), record("handoff", {"to": "old"})]
        text = record("text", {"message_id": "m"}, due="handoff", fingerprint="f")
        found = reading.read_message([*old, text, record("context_update", {"variable": "new"})], "f")
        self.assertEqual((found.text, found.output, found.updates, found.handoff), ({"message_id": "m"}, None, [{"variable": "new"}], None))


class SocketMessageTest(MessageTest, unittest.TestCase):
    transport = "socket"


@unittest.skipUnless("nats-py" in LIBRARIES, "nats-py is not installed")
class NatsPyMessageTest(MessageTest, unittest.TestCase):
    transport = "nats-py"
