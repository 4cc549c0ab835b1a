"""What a frontend shows: the cases that both clients share."""

import copy
import json
import pathlib
import unittest

from oneturn_client import component_payload, is_shown

CASES = pathlib.Path(__file__).resolve().parents[2] / "testdata/frontend.jsonl"


class FrontendTest(unittest.TestCase):
    def test_cases(self):
        for case in map(json.loads, CASES.read_text(encoding="utf-8").splitlines()):
            event, expect = case["event"], case["expect"]
            before = copy.deepcopy(event)
            for given in (event, {"type": "chat." + event["kind"], "data": event}, {**event, "kind": "chat." + event["kind"]}):
                with self.subTest(case["name"]):
                    if case["kind"] == "flatten":
                        self.assertEqual(component_payload(given), expect["payload"])
                    else:
                        self.assertIs(is_shown(given), expect["shown"])
                        self.assertEqual(event["content"], expect.get("text", event["content"]))
            self.assertEqual(event, before)

    def test_arguments_that_are_stored_elsewhere_stay_where_they_are(self):
        payload = {"interaction_type": "auto_tool", "tool_args": {"$blob": "b", "sha256": "00", "size": 300000}}
        self.assertEqual(component_payload({"kind": "tool_call", "component_type": "ActionPlan", "payload": payload}), payload)
