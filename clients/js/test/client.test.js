// The client against a real worker with an embedded server.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "@nats-io/transport-node";
import { Client, ConflictError, isShown, NoWorkerError, OneturnError, WaitError } from "../index.js";
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

const greeting = (turn, name, more) => ({
  chat: "greetings", turn, workflow: "Clients", agent: "Greeter", model: "Greeting", data: { name }, ...more,
});

test("a turn gets one response, however often it is published", async () => {
  const turn = greeting("once", "Ada", { userId: "u1", sequence: 3, contextVariables: { plan: "basic" } });
  const stored = await client.publishTurn(turn);
  assert.equal(stored.stream, "ONETURN_IN");
  assert.ok((await client.publishTurn(turn)).duplicate);
  const response = await client.runTurn(turn);
  assert.equal(response.content, "Hello, Ada!");
  assert.equal(response.success, true);
  const kinds = [];
  for await (const { kind, event } of client.history({ chat: "greetings" })) if (event.data.turn === "once") kinds.push(kind);
  assert.deepEqual(kinds, ["tool_call", "tool_response"]);
});

test("the same key of another run is another turn", async () => {
  const [first, second] = await Promise.all(["r1", "r 2"].map((run) => client.runTurn(greeting("runs", run, { run }))));
  assert.equal(first.content, "Hello, r1!");
  assert.equal(second.content, "Hello, r 2!");
});

test("ids that are no subject tokens reach their turn", async () => {
  for (const chat of ["a.b *>", "-", "ä".repeat(100), "x\u{1F600}"]) {
    const response = await client.runTurn(greeting("t.*-é", "Ada", { chat }));
    assert.equal(response.chat_id, chat);
  }
});

test("other data under a used key is a conflict", async () => {
  await client.runTurn(greeting("taken", "Ada"));
  await assert.rejects(client.runTurn(greeting("taken", "Bob")), ConflictError);
  assert.equal((await client.awaitResponse({ chat: "greetings", turn: "taken" })).content, "Hello, Ada!");
});

test("the fingerprint is the worker's, whatever the data is", async () => {
  const data = { name: "\u0001\b\"\\é\u2028\u{1F600}\u007f", "\u{1F600}": 1, "\uFFFD": [1e21, 1.5, -0, 5e-7, null, true], __proto__: undefined, b: undefined };
  const response = await client.runTurn(greeting("odd", "", { data }), { timeout: 15_000 }); // a difference would be a conflict
  assert.match(response.content, /^Hello, /);
});

test("data that does not match its model gets feedback", async () => {
  const response = await client.runTurn(greeting("bad", 7));
  assert.equal(response.code, "validation_failed");
  assert.match(response.payload.feedback, /name/);
});

test("a question is reported once, answered, and decided", async () => {
  const turn = { chat: "posts", turn: "post-1", workflow: "Clients", agent: "Editor", model: "Post", data: { title: "News" }, run: "r1" };
  const asked = [];
  const verdicts = [];
  const response = await client.runTurn(turn, {
    onQuestion: async (question) => {
      asked.push(question.payload.title);
      const answer = (value) => client.answer({ chat: "posts", toolCallId: question.tool_call_id, run: "r1", value });
      verdicts.push((await answer({})).code);
      const direct = { chat: "posts", toolCallId: question.tool_call_id, value: { approved: true }, workflow: "Clients", run: "r1" };
      verdicts.push((await client.answer({ ...direct, subject: question.answer.subject })).code);
      verdicts.push((await answer({ approved: false })).code);
    },
  });
  assert.deepEqual(asked, ["News"]);
  assert.deepEqual(verdicts, ["invalid", "accepted", "already_answered"]);
  assert.equal(response.content, "published");
});

test("open questions are listed, and an unknown one is refused", async () => {
  const turn = { chat: "open", turn: "post-2", workflow: "Clients", agent: "Editor", model: "Post", data: { title: "Later" } };
  let found;
  await assert.rejects(client.runTurn(turn, { timeout: 20_000, onQuestion: () => { throw new Error("seen"); } }), /seen/);
  for await (const question of client.questions({ chat: "open" })) found = question;
  assert.equal(found.tool_call_id, "post-2/1");
  assert.equal((await client.answer({ chat: "open", toolCallId: "none/1", value: 1 })).code, "unknown");
});

test("the object in an agent's message runs its tool, and hidden texts are not shown", async () => {
  const chat = { chat: "messages", workflow: "Clients" };
  await client.publishMessage({ ...chat, id: "m1", agent: "Greeter", content: 'Sure:\n{"name": "Ada",}', finishReason: "stop", run: "r1", sequence: 4 });
  assert.equal((await client.awaitResponse({ chat: "messages", turn: "m1", run: "r1" })).content, "Hello, Ada!");
  await client.publishMessage({ ...chat, id: "m2", agent: "Interviewer", content: "NEXT", run: "r1", sequence: 6 });
  await client.publishUserMessage({ ...chat, id: "m3", userId: "u1", content: "hello", run: "r1" });
  const found = new Map();
  for (let left = 200; found.size < 4 && left > 0; left--) {
    for await (const { event } of client.history({ chat: "messages" })) if (event.data.message_id) found.set(event.data.id + event.type, isShown(event));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.equal(found.get("m1chat.text"), true);
  assert.equal(found.get("m2chat.text"), false);
  assert.equal(found.get("m3chat.user_message"), true);
  const context = await client.context({ chat: "messages" });
  assert.equal(context.last_speaker, "Interviewer");
  assert.equal(context.variables.interview_complete, true);
});

test("a turn is cancelled", async () => {
  const turn = { chat: "naps", turn: "nap-1", workflow: "Clients", agent: "Sleeper", model: "Nap", data: { seconds: 60 } };
  await client.publishTurn(turn);
  await client.cancel({ ...turn, reason: "the user left" });
  assert.equal((await client.awaitResponse(turn)).code, "cancelled");
});

test("a large payload is fetched", async () => {
  const turn = { chat: "copies", turn: "copy-1", workflow: "Clients", agent: "Printer", model: "Copies", data: { text: "0123456789", count: 70_000 } };
  const { payload } = await client.runTurn(turn);
  assert.equal(typeof payload.$blob, "string");
  assert.equal((await client.fetch(payload)).text.length, 700_000);
  await assert.rejects(client.fetch({ ...payload, sha256: "00" }), /do not match/);
});

test("a wait ends in time, and names what is missing", async () => {
  const missing = { chat: "nothing", turn: "t", timeout: 300 };
  await assert.rejects(client.awaitResponse(missing, { timeout: 300 }), (error) => error instanceof WaitError && /no worker has claimed it/.test(error.message));
  await assert.rejects(client.awaitResponse(missing, { signal: AbortSignal.timeout(200) }), { name: "TimeoutError" });
});

test("without a worker or a stream the error names the fix", async () => {
  const other = new Client(nc, { prefix: "other" });
  await assert.rejects(other.publishTurn(greeting("t", "Ada")), /no stream stores it: start a worker, or run turnctl provision/);
  await assert.rejects(other.awaitResponse({ chat: "c", turn: "t" }, { timeout: 200 }), NoWorkerError);
  await assert.rejects(client.publishTurn({ chat: "c" }), (error) => error instanceof OneturnError && /has no turn, no workflow: set it/.test(error.message));
});

test("messages of agents and users have the form of the wire contract", async () => {
  const stored = nc.subscribe("oneturn.in.default.*.acme.Clients.c", { max: 2 });
  const acme = new Client(nc, { app: "acme" });
  await acme.publishMessage({
    chat: "c", id: "m1", workflow: "Clients", agent: "Editor", content: { title: "News" }, turn: "t1", run: "r1", sequence: 4, finishReason: "stop",
  });
  await acme.publishUserMessage({ chat: "c", id: "m2", workflow: "Clients", userId: "u1", content: "hello" });
  const sent = [];
  for await (const message of stored) sent.push([message.subject.split(".")[3], message.json().data, message.headers.get("Nats-Msg-Id").length]);
  assert.deepEqual(sent, [
    ["agent_message", {
      kind: "agent_message", agent: "Editor", content: { title: "News" }, message_id: "m1", finish_reason: "stop", turn_idempotency_key: "t1",
      run_id: "r1", turn_sequence: 4, context: { app_id: "acme", chat_id: "c", workflow_name: "Clients", turn_sequence: 4 },
    }, 38],
    ["user_message", {
      kind: "user_message", id: "m2", chat_id: "c", user_id: "u1", content: "hello",
      context: { app_id: "acme", chat_id: "c", workflow_name: "Clients", user_id: "u1" },
    }, 38],
  ]);
});

test("a publisher of a tenant has the rights that a client needs", async () => {
  const secured = await startSecuredWorker();
  const publisher = await connect({ servers: secured.url, user: "acme-publisher", pass: "pw", inboxPrefix: "_INBOX_publisher" });
  try {
    const acme = new Client(publisher, { app: "acme" });
    const turn = { chat: "c", turn: "t", workflow: "Clients", agent: "Editor", model: "Post", data: { title: "News" } };
    await acme.publishMessage({ chat: "c", id: "m", workflow: "Clients", agent: "Greeter", content: '{"name": "Ada"}' });
    assert.equal((await acme.awaitResponse({ chat: "c", turn: "m" })).content, "Hello, Ada!");
    const answer = ({ tool_call_id: toolCallId }) => acme.answer({ chat: "c", toolCallId, value: { approved: true } });
    assert.equal((await acme.runTurn(turn, { onQuestion: answer })).content, "published");
  } finally {
    await publisher.close();
    await secured.stop();
  }
});

test("a wait survives a restart of the server", async () => {
  const first = await startWorker();
  const connection = await connect({ servers: first.url, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
  let second;
  try {
    const restarted = new Client(connection);
    await restarted.runTurn(greeting("before", "Ada"));
    const response = restarted.awaitResponse({ chat: "greetings", turn: "after" }, { timeout: 30_000 });
    await first.kill();
    second = await startWorker([], {}, first);
    await restarted.publishTurn(greeting("after", "Bob"));
    assert.equal((await response).content, "Hello, Bob!");
  } finally {
    await connection.close();
    await (second ?? first).stop();
  }
});
