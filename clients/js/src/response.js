// Waits for the response of a turn.

import { ConflictError, OneturnError } from "./errors.js";
import { pages } from "./requests.js";
import { until } from "./wait.js";

export async function awaitResponse(nc, subjects, turn, fingerprint, options) {
  const api = await subjects.api(turn.app, "turn");
  return until(nc, await subjects.eventsOfTurn(turn), options, async () => {
    const state = await readTurn(nc, api, turn, fingerprint);
    if (state.response) return { value: state.response };
    if (state.conflict) throw turnConflict();
    return { ...state, soon: !state.claimed, why: `turn ${turn.turn} of chat ${turn.chat} has no response yet: ${why(state)}` };
  });
}

/** Reads a turn: its response, else whether it is claimed, its open questions, and whether only other data has a response. */
export async function readTurn(nc, api, { chat, run, turn }, fingerprint) {
  const questions = new Map();
  let called = false; // a response without a call is left of an earlier turn
  let claimed = false; // with this data
  let first; // the response to other data
  const request = { chat_id: chat, run_id: run, turn, fingerprint: fingerprint || undefined };
  for await (const { kind, fingerprint: print, event } of pages(nc, api, request, "records")) {
    const data = event?.data;
    if (kind === "tool_call") {
      called = true;
      claimed ||= !fingerprint || print === fingerprint;
    } else if (kind === "tool_response") {
      if (!fingerprint || (called && print === fingerprint)) return { response: readable(data), claimed: true };
      if (called) first ??= { data, print };
    } else if (data?.awaiting_response) {
      questions.set(data.tool_call_id, data);
    } else if (data?.kind === "tool_call_ack") {
      questions.delete(data.tool_call_id);
    }
  }
  if (claimed || !first) return { claimed, questions: [...questions.values()] };
  return first.print ? { conflict: true } : { response: readable(first.data) };
}

export function turnConflict() {
  return new ConflictError("the turn key was used before with other data, and this data does not run: use another key, or a run id");
}

function readable(data) {
  if (data) return data;
  throw new OneturnError("the turn has ended, and its response in the journal is damaged: see turnctl show");
}

export function why({ claimed }) {
  return claimed ? "its tool runs, or waits for an answer" : "no worker has claimed it: none serves its workflow and pool, or all are busy";
}
