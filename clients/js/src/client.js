import { headers } from "@nats-io/nats-core";
import { jetstream } from "@nats-io/jetstream";
import { OneturnError, WaitError } from "./errors.js";
import { awaitMessage } from "./message.js";
import { ask, isNoResponders, isTimeout, pages, readBlob } from "./requests.js";
import { awaitResponse } from "./response.js";
import { event, fingerprint, msgID, plain, Subjects } from "./wire.js";

const PUBLISH_TIMEOUT = 5_000;
const PUBLISH_TRIES = 3;
const ANSWER_TIMEOUT = 10_000;
const UNKNOWN_FOR = 3_000; // how long a question is looked up that no worker knows yet

/** Publishes turns and messages, waits for responses, answers questions. The connection stays the caller's. */
export class Client {
  #nc;
  #js;
  #subjects;
  #app;

  constructor(nc, { prefix = "oneturn", pool = "default", app = "default" } = {}) {
    this.#nc = nc;
    this.#js = jetstream(nc);
    this.#subjects = new Subjects(prefix, pool);
    this.#app = app;
  }

  /** Publishes a turn. Once it is stored it gets exactly one response; publishing it again is harmless. */
  async publishTurn(turn) {
    const t = this.#with(turn, ["chat", "turn", "workflow"], "turn");
    const ids = [t.app, t.chat, t.run, t.turn];
    const print = await fingerprint(t.workflow, t.agent ?? "", t.model ?? "", t.data);
    return this.#publish("structured_output_ready", t, { ids, print }, {
      agent: t.agent, model_name: t.model, structured_data: plain(t.data), auto_tool_mode: true, turn_idempotency_key: t.turn,
      run_id: t.run, correction_of: t.correctionOf, context: contextOf(t),
    });
  }

  /** Publishes what an agent has written: a text, or an object. A message id of a chat and run is handled once. */
  async publishMessage(message) {
    const m = this.#with(message, ["chat", "id", "workflow", "agent"], "message");
    if (m.agent === "user") throw new OneturnError("the agent user stands for people: publish what they write with publishUserMessage");
    return this.#publish("agent_message", m, { ids: [m.app, m.chat, m.run, m.id], print: await messagePrint(m) }, {
      agent: m.agent, content: plain(m.content), message_id: m.id, finish_reason: m.finishReason, turn_idempotency_key: m.turn,
      run_id: m.run, turn_sequence: m.sequence, context: contextOf(m),
    });
  }

  /** Publishes what a user has written. */
  async publishUserMessage(message) {
    const m = this.#with(message, ["chat", "id", "workflow"], "message");
    return this.#publish("user_message", m, { ids: [m.app, m.chat, m.run, m.id], print: await messagePrint(m) }, {
      id: m.id, chat_id: m.chat, user_id: m.userId, content: plain(m.content), run_id: m.run, context: contextOf(m),
    });
  }

  /**
   * Waits until all that follows from a message is stored: {text, response, output, updates, handoff}. With the content of the message it
   * rejects an id that has other content.
   */
  async awaitMessage(message, options = {}) {
    const known = "content" in message; // as it was published
    const m = this.#with(message, known ? ["chat", "id", "workflow"] : ["chat", "id"], "message");
    return awaitMessage(this.#nc, this.#subjects, m, known ? await messagePrint(m) : "", options);
  }

  /** Waits for the response of a turn: the data of its event. With the turn's data it rejects what answers other data. */
  async awaitResponse(turn, options = {}) {
    const t = this.#with(turn, ["chat", "turn"], "turn");
    const print = "data" in turn ? await fingerprint(t.workflow, t.agent ?? "", t.model ?? "", t.data) : "";
    return awaitResponse(this.#nc, this.#subjects, t, print, options);
  }

  /** Publishes a turn and waits for its response. */
  async runTurn(turn, options = {}) {
    await this.publishTurn(turn);
    return this.awaitResponse(turn, options);
  }

  /** Answers a question and returns the verdict: {status, code, message, …}, which need not be an acceptance. */
  async answer(answer, { timeout = ANSWER_TIMEOUT } = {}) {
    const a = this.#with(answer, ["chat", "toolCallId"], "answer");
    const end = Date.now() + timeout;
    const asked = a.workflow && a.subject ? undefined : await this.#question(a, end);
    if (asked === null) return { status: 404, code: "unknown", message: "There is no such question.", tool_call_id: a.toolCallId };
    const verdict = await this.#subjects.verdict(a.app);
    const sub = this.#nc.subscribe(verdict, { max: 1, timeout: Math.max(end - Date.now(), 1) });
    const replies = sub[Symbol.asyncIterator]();
    const reply = replies.next();
    reply.catch(() => {}); // it is awaited below, unless the publish fails first
    try {
      await this.#send(a.subject ?? asked.answer_subject, event("tool_call_response", {
        tool_call_id: a.toolCallId, response: plain(a.value), run_id: a.run ?? asked?.run_id,
        context: { app_id: a.app, chat_id: a.chat, workflow_name: a.workflow ?? asked.workflow_name, user_id: a.userId },
      }), undefined, { "Oneturn-Reply": verdict });
      return (await reply).value.json();
    } catch (error) {
      if (!isTimeout(error)) throw error;
      throw new WaitError(`answer ${a.toolCallId}: it is stored and not decided yet: a worker of its workflow decides`, { cause: error });
    } finally {
      sub.unsubscribe();
    }
  }

  /** Requests the end of a turn. A response that is stored already stays. */
  async cancel(request) {
    const c = this.#with(request, ["chat", "workflow", request.toolCallId ? "toolCallId" : "turn"], "cancel request");
    const subject = await this.#subjects.inbound("cancel", c.app, c.workflow, c.chat);
    return this.#send(subject, event("cancel", {
      turn: c.turn, tool_call_id: c.toolCallId, run_id: c.run, reason: c.reason,
      context: { app_id: c.app, chat_id: c.chat, workflow_name: c.workflow, user_id: c.userId },
    }));
  }

  /** Lists the open questions of a chat, or of the tenant without one. */
  async *questions({ app = this.#app, chat } = {}) {
    yield* pages(this.#nc, await this.#subjects.api(app, "questions"), { chat_id: chat }, "questions");
  }

  /** Lists the stored events of a chat in order, from a sequence: {sequence, kind, event, …}. */
  async *history({ app = this.#app, chat, from }) {
    yield* pages(this.#nc, await this.#subjects.api(app, "history"), { chat_id: chat, from }, "records");
  }

  /** Reads the context variables of a chat as they are now: {variables, set, last_speaker, messages, …}. */
  async context({ app = this.#app, chat, workflow }) {
    return (await ask(this.#nc, await this.#subjects.api(app, "context"), { chat_id: chat, workflow_name: workflow })).json();
  }

  /** Fetches a payload or tool_args over 256 KiB, which an event replaces by {"$blob": …}; others are returned as they are. */
  async fetch(value, { app = this.#app } = {}) {
    if (typeof value?.$blob !== "string") return value;
    return JSON.parse(new TextDecoder().decode(await readBlob(this.#nc, await this.#subjects.api(app, "blob"), value)));
  }

  #with(request, required, what) {
    const missing = required.filter((name) => request[name] === undefined || request[name] === "");
    if (missing.length > 0) throw new OneturnError(`the ${what} has no ${missing.join(", no ")}: set it`);
    const names = {};
    for (const field of ["workflow", "agent", "model"]) if (request[field]) names[field] = request[field].normalize("NFC"); // as workers compare them
    return { ...request, ...names, app: request.app || this.#app };
  }

  async #publish(kind, { app, workflow, chat }, { ids, print }, data) {
    const id = await msgID(this.#subjects.pool, kind, ids, print);
    return this.#send(await this.#subjects.inbound(kind, app, workflow, chat), event(kind, data), id);
  }

  /** Stores a message; without a reply it is sent again, which is harmless. */
  async #send(subject, body, id, fields = {}) {
    const h = headers();
    for (const [name, value] of Object.entries(fields)) h.set(name, value);
    for (let left = PUBLISH_TRIES - 1; ; left--) {
      try {
        const { stream, seq, duplicate } = await this.#js.publish(subject, body, { msgID: id, headers: h, timeout: PUBLISH_TIMEOUT });
        return { stream, sequence: seq, duplicate };
      } catch (error) {
        if (left > 0 && isTimeout(error)) continue;
        if (!isNoResponders(error)) throw error;
        throw new OneturnError(`publish to ${subject}: no stream stores it: start a worker, or run turnctl provision`, { cause: error });
      }
    }
  }

  /** Looks up a question; null if there is none, and none comes from a turn that was published just now. */
  async #question({ app, chat, toolCallId, run }, end) {
    const subject = await this.#subjects.api(app, "questions");
    const unknown = Math.min(end, Date.now() + UNKNOWN_FOR);
    for (let pause = 100; ; pause *= 2) {
      const page = (await ask(this.#nc, subject, { chat_id: chat, tool_call_id: toolCallId, run_id: run })).json();
      if (page.questions.length > 0) return page.questions[0];
      if (Date.now() >= unknown) return null;
      await new Promise((resolve) => setTimeout(resolve, Math.min(pause, unknown - Date.now())));
    }
  }
}

/** The fingerprint of a message of an agent, or without agent of a user. Workers find a user in the context variables, too. */
function messagePrint({ workflow, agent, userId, content, turn, id, contextVariables }) {
  return fingerprint(workflow, agent ?? "user", userId || String(contextVariables?.user_id ?? ""), content, (agent && turn) || id);
}

function contextOf({ app, chat, workflow, userId, sequence, contextVariables }) {
  return {
    app_id: app, chat_id: chat, workflow_name: workflow, user_id: userId, turn_sequence: sequence, context_variables: contextVariables,
  };
}
