// Waits for all that follows from a message: its text, the response of its turn or its structured output, the next speaker.

import { ConflictError } from "./errors.js";
import { pages } from "./requests.js";
import { readTurn, turnConflict, why } from "./response.js";
import { until } from "./wait.js";
import { messageToken, turnToken } from "./wire.js";

const SETTLE = 3_000; // after which a turn whose key has other data is not claimed any more, if no handoff shows that

export async function awaitMessage(nc, subjects, message, fingerprint, options) {
  const { app, chat, run, id } = message;
  const api = await subjects.api(app, "turn");
  const events = await subjects.eventsOfChat(app, chat);
  const tokens = new Set([await messageToken(run, id)]); // of the message, and of the turns that it makes
  const relevant = ({ subject }) => tokens.has(subject.slice(events.length - 1).split(".", 1)[0]);
  let corrections = 0;
  let response = null;
  let conflictSince;

  /** Reads the turn of the message, or of its last correction, if that is stored. */
  async function readTurns({ text, turnFingerprint }) {
    for (; text.turn_idempotency_key && !response; corrections++) {
      const turn = corrections > 0 ? `${text.turn_idempotency_key}~${corrections}` : text.turn_idempotency_key;
      tokens.add(await turnToken(run, turn)); // first, so that nothing is missed
      const state = await readTurn(nc, api, { chat, run, turn }, corrections > 0 ? "" : turnFingerprint);
      if (!state.response) return state;
      if (state.response.correcting && corrections < (text.corrections ?? 0)) continue;
      response = state.response;
      break;
    }
    return { claimed: true };
  }

  return until(nc, events, options, async () => {
    const missing = (text, more) => ({ ...more, why: `message ${id} of chat ${chat} is not complete yet: ${text}` });
    const stored = await readMessage(pages(nc, api, { chat_id: chat, run_id: run, message_id: id }, "records"), fingerprint);
    const { text, output, updates, handoff, due } = stored;
    if (!text) return missing(`no worker has stored it: none serves pool ${subjects.pool}, or all are busy`, { soon: true });
    const turn = await readTurns(stored); // after the message: what comes before its handoff is stored
    if (turn.conflict) {
      conflictSince ??= Date.now();
      if (handoff || !due.includes("turn") || (!due.includes("handoff") && Date.now() - conflictSince >= SETTLE)) throw turnConflict();
    }
    if (due.includes("turn") && !response && !handoff) return missing(`of its turn ${text.turn_idempotency_key}, ${why(turn)}`, { ...turn, soon: !turn.claimed });
    if (due.includes("handoff") && !handoff) return missing("its handoff is not stored");
    if (isOutputDue(text) && !output) return missing("its structured output is not stored");
    return { value: { text, response, output, updates, handoff } };
  }, relevant);
}

/** Reads the records of a message that are stored: the data of their events. What is older than the text is left of an earlier message. */
export async function readMessage(records, fingerprint) {
  const message = { text: null, output: null, updates: [], handoff: null };
  for await (const record of records) {
    const data = record.event?.data;
    if (record.kind === "text") {
      if (fingerprint && record.fingerprint !== fingerprint) {
        throw new ConflictError("the id of the message was used before with other content, and this content changes nothing: use another id, or a run id");
      }
      Object.assign(message, { text: data, output: null, updates: [], handoff: null });
      message.due = (record.due ?? "").split(",");
      message.turnFingerprint = record.turn_fingerprint ?? "";
    } else if (record.kind === "structured_output") message.output = data;
    else if (record.kind === "context_update") message.updates.push(data);
    else if (record.kind === "handoff") message.handoff = data;
  }
  return message;
}

/** Whether a structured output follows: of an agent that has a model and no tool that runs by itself. */
function isOutputDue({ turn_idempotency_key: turn, model_name: model, structured_output: object, unread }) {
  return Boolean(!turn && model && (object !== undefined || unread));
}
