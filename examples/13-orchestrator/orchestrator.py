"""Answers each message that a user writes, in any chat, with what an agent has produced."""

import json
import os
import sys

from oneturn_client import Client, connect

WORKFLOW, NAME = "Studio", "studio-orchestrator"
INBOX, TEXTS = "_INBOX_orchestrator", "$KV.ONETURN_TURNS.e.*.*.*.*.text"
nats = connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"), inbox_prefix=INBOX)
client, messages = Client(nats), nats.subscribe(INBOX + "." + NAME)
consumer = {"name": NAME, "durable_name": NAME, "deliver_subject": INBOX + "." + NAME, "filter_subject": TEXTS,
            "deliver_policy": "new", "ack_policy": "explicit", "max_ack_pending": 100}
created = nats.request("$JS.API.CONSUMER.CREATE.KV_ONETURN_TURNS.%s.%s" % (NAME, TEXTS),
                       json.dumps({"stream_name": "KV_ONETURN_TURNS", "config": consumer}).encode())
if "error" in json.loads(created.body):
    sys.exit("start the worker first: %s" % json.loads(created.body)["error"]["description"])
print("the orchestrator is ready", flush=True)
while True:
    if (message := messages.next(60)) is None:
        continue
    event = json.loads(message.body or "{}")  # without a body: it was erased
    if event.get("type") == "chat.user_message" and event["data"]["workflow_name"] == WORKFLOW:
        data = event["data"]
        # Here a team of agents would run. This is what one of them has written; the worker runs the tool for it.
        post = {"title": str(data["content"])[:60], "body": str(data["content"]), "agent_message": "May I publish this?"}
        client.publish_message(chat=data["chat_id"], app=data["app_id"], user_id=data.get("user_id"), workflow=WORKFLOW,
                               agent="ApprovalAgent", id="post-" + data["message_id"], content=post)
    nats.request(message.reply, b"+ACK")  # a message that is not acknowledged comes again, and is answered once all the same
