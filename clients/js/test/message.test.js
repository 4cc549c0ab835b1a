// The wait for all that follows from a message, against a real worker.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "@nats-io/transport-node";
import { readMessage } from "../src/message.js";
import { Client, ConflictError, NoWorkerError, OneturnError, WaitError } from "../index.js";
import { startSecuredWorker, startWorker } from "./worker.js";

let worker;
let nc;
let client;

before(async () => {
  worker = await startWorker(["--park-after", "200ms"]);
  nc = await connect({ servers: worker.url });
  client = new Client(nc);
});
after(async () => {
  await nc?.close();
  await worker?.stop();
});

const published = async (message, options = { timeout: 20_000 }) => {
  await (message.agent ? client.publishMessage(message) : client.publishUserMessage(message));
  return client.awaitMessage(message, options);
};
const talks = (id, agent, content, more) => ({ chat: "talks", id, workflow: "Talks", agent, content, run: "r1", ...more });

test("a wait ends with the last record that follows from a message", async () => {
  const user = await published(talks("m1", undefined, "I want a shop.", { userId: "ada" }));
  assert.deepEqual([user.text.content, user.handoff.to, user.response, user.output], ["I want a shop.", "Interviewer", null, null]);
  const hidden = await published(talks("m2", "Interviewer", "NEXT", { finishReason: "stop", sequence: 2 }));
  assert.deepEqual([hidden.text.ui_hidden, hidden.handoff.to], [true, "Architect"]);
  assert.deepEqual(hidden.updates.map(({ variable, value }) => [variable, value]), [["complete", true]]);
  const turned = await published(talks("m3", "Architect", "Here: {'title': 'Shop',}", { turn: "turn 3" }));
  assert.deepEqual([turned.response.turn, turned.response.payload.message, turned.handoff.to], ["turn 3", "drawn: Shop", "terminate"]);
  assert.deepEqual(await client.awaitMessage({ chat: "talks", id: "m3", run: "r1" }), turned, "again, from what is stored");
  const failed = await published(talks("m4", "Architect", "No plan today."));
  assert.deepEqual([failed.response.code, failed.handoff.to], ["validation_failed", "terminate"]);
  const output = await published(talks("m5", "Critic", { title: "Shop" }));
  assert.deepEqual([output.output.payload, output.response, output.handoff.to], [{ title: "Shop" }, null, null]);
});

test("a message without rules and triggers is its text", async () => {
  const { text, ...rest } = await published({ chat: "plain", id: "m1", workflow: "Clients", agent: "Interviewer", content: "Hello." });
  assert.equal(text.content, "Hello.");
  assert.deepEqual(rest, { response: null, output: null, updates: [], handoff: null });
});

test("a wait for a corrected message ends with the last correction", async () => {
  const { response, handoff } = await published(talks("c1", "Corrected", "No plan today."));
  assert.deepEqual([response.turn, response.payload.message, handoff.to], ["c1~2", "built: Shop", "terminate"]);
});

test("a wait ends without a response if the workflow sends none to failures", async () => {
  const { text, response } = await published({ chat: "quiet", id: "m1", workflow: "Quiet", agent: "Architect", content: "No plan today." });
  assert.equal(text.turn_idempotency_key, "m1");
  assert.equal(response, null);
});

test("other content under a used id is a conflict", async () => {
  await published(talks("taken", "Interviewer", "one"));
  await assert.rejects(published(talks("taken", "Interviewer", "two")), (error) => error instanceof ConflictError && /id of the message/.test(error.message));
  await assert.rejects(published(talks("taken", undefined, "one", { userId: "ada" })), ConflictError, "of a user, and not of the agent");
  assert.equal((await client.awaitMessage({ chat: "talks", id: "taken", run: "r1" })).text.content, "one");
});

test("the fingerprint of a message is the worker's, whatever it has", async () => {
  const odd = { title: "é\u2028\u{1F600}", "\u{1F600}": 1, "\uFFFD": [1e21, 1.5, -0, 5e-7, null, true] };
  await published(talks("odd 1", "Critic", odd, { contextVariables: { user_id: "ada" } }));
  await published({ ...talks("odd 2", "Interviewer", "x", { userId: "bob" }), chat: "x.y *>" });
  await published({ ...talks("odd 3", "Interviewer", "x"), run: undefined });
});

test("a used turn key with other data is a conflict, and the number of a text is not taken for other data", async () => {
  for (const workflow of ["Clients", "Talks"]) {
    const [agent, name, model] = workflow === "Talks" ? ["Architect", "title", "Plan"] : ["Greeter", "name", "Greeting"];
    const message = (id, value) => ({ chat: "reused", id: `${workflow} ${id}`, turn: `${workflow} key`, workflow, agent, content: `{"${name}": "${value}", "more": 1.0}` });
    assert.match((await published(message("m1", "Ada"))).response.payload.message, /Ada/);
    assert.match((await published(message("m2", "Ada"))).response.payload.message, /Ada/, "the same data is the same turn");
    await assert.rejects(published(message("m3", "Bob")), (error) => error instanceof ConflictError && /turn key/.test(error.message));
    assert.equal((await client.awaitResponse({ chat: "reused", turn: `${workflow} key` })).status, "ok", model);
  }
});

test("a used turn key that runs with other data has its own response", async () => {
  const message = (id, title) => ({ chat: "quiet", id, turn: "key", workflow: "Quiet", agent: "Architect", content: `{"title": "${title}"}` });
  assert.equal((await published(message("k1", "one"))).response.payload.message, "drawn: one");
  assert.equal((await published(message("k2", "two"))).response.payload.message, "drawn: two");
  assert.equal((await client.awaitMessage({ chat: "quiet", id: "k1" })).response.payload.message, "drawn: one");
});

test("questions of the turn of a message are reported while it waits", async () => {
  const asked = [];
  const { response } = await published(talks("asks", "Architect", '{"title": "Ask"}'), {
    timeout: 20_000,
    onQuestion: async (question) => {
      asked.push(question.payload.title);
      assert.equal((await client.answer({ chat: "talks", run: "r1", toolCallId: question.tool_call_id, value: {} })).code, "accepted");
    },
  });
  assert.deepEqual(asked, ["Ask"]);
  assert.equal(response.payload.message, "drawn: Ask");
});

test("a wait for a message names what is missing", async () => {
  const missing = (pattern) => (error) => error instanceof WaitError && pattern.test(error.message);
  await assert.rejects(client.awaitMessage({ chat: "talks", id: "none" }, { timeout: 200 }), missing(/no worker has stored it/));
  await client.publishMessage(talks("open", "Architect", '{"title": "Ask"}'));
  await assert.rejects(client.awaitMessage({ chat: "talks", id: "open", run: "r1" }, { timeout: 2_000 }), missing(/of its turn open, its tool runs, or waits for an answer/));
  await assert.rejects(client.awaitMessage({ chat: "talks", id: "none" }, { signal: AbortSignal.timeout(200) }), { name: "TimeoutError" });
  await assert.rejects(new Client(nc, { prefix: "other" }).awaitMessage({ chat: "c", id: "m" }, { timeout: 200 }), NoWorkerError);
});

test("a message that names too little is refused", async () => {
  await assert.rejects(client.awaitMessage({ chat: "c" }), /the message has no id: set it/);
  await assert.rejects(client.awaitMessage({ chat: "c", id: "m", content: "x" }), /the message has no workflow: set it/);
  await assert.rejects(client.publishMessage(talks("m", "user", "x")), (error) => error instanceof OneturnError && /publishUserMessage/.test(error.message));
});

test("records that are older than the text are left of an earlier message", async () => {
  const record = (kind, data, more) => ({ kind, event: { data }, ...more });
  async function* records() {
    yield record("context_update", { variable: "old" });
    yield record("structured_output", { payload: "old" });
    yield record("handoff", { to: "old" });
    yield record("text", { message_id: "m" }, { due: "handoff", fingerprint: "f" });
    yield record("context_update", { variable: "new" });
  }
  const { text, output, updates, handoff, due } = await readMessage(records(), "f");
  assert.deepEqual([text, output, updates, handoff, due], [{ message_id: "m" }, null, [{ variable: "new" }], null, ["handoff"]]);
});

test("names with accents are one name in either spelling", async () => {
  const { text } = await published({ chat: "accents", id: "m1", workflow: "Cafe\u0301", agent: "Rene\u0301", content: "x" }, { timeout: 90_000 }); // a worker that is not alone waits for one that has the workflow
  assert.deepEqual([text.workflow_name, text.agent], ["Caf\u00e9", "Ren\u00e9"]);
});

test("a publisher of a tenant has the rights to wait for a message", async () => {
  const secured = await startSecuredWorker();
  const publisher = await connect({ servers: secured.url, user: "acme-publisher", pass: "pw", inboxPrefix: "_INBOX_publisher" });
  try {
    const acme = new Client(publisher, { app: "acme" });
    const message = talks("m1", "Architect", '{"title": "Shop"}');
    await acme.publishMessage(message);
    assert.equal((await acme.awaitMessage(message)).handoff.to, "terminate");
  } finally {
    await publisher.close();
    await secured.stop();
  }
});
