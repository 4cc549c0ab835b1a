// Waits for the response of a turn: live copies can be lost, so the turn is read from the workers as well.

import { ConflictError, NoWorkerError, OneturnError, WaitError } from "./errors.js";
import { pages } from "./requests.js";

const REREAD = 5_000;
const RETRY = 1_000; // while no worker answers, or none has claimed the turn

export async function awaitResponse(nc, subjects, turn, fingerprint, { timeout = 60_000, onQuestion, signal } = {}) {
  const end = Date.now() + timeout;
  const api = await subjects.api(turn.app, "turn");
  const request = { chat_id: turn.chat, run_id: turn.run, turn: turn.turn, fingerprint: fingerprint || undefined };
  const reported = new Set();
  let woken = () => {};
  let news = false; // a live copy has arrived since the last read
  const sub = nc.subscribe(await subjects.eventsOfTurn(turn), {
    callback: () => {
      news = true;
      woken();
    },
  });
  const abort = () => woken();
  signal?.addEventListener("abort", abort);
  try {
    for (;;) {
      signal?.throwIfAborted();
      news = false;
      let state = {};
      let failed;
      try {
        state = await read(pages(nc, api, request, "records"), fingerprint);
      } catch (error) {
        if (!(error instanceof NoWorkerError)) throw error;
        failed = error;
      }
      if (state.response) return state.response;
      for (const question of state.questions ?? []) {
        if (reported.has(question.tool_call_id)) continue;
        reported.add(question.tool_call_id);
        await onQuestion?.(question);
      }
      const left = end - Date.now();
      if (left <= 0) throw failed ?? new WaitError(`turn ${turn.turn} of chat ${turn.chat} has no response yet: ${why(state)}`);
      if (news) continue;
      let timer;
      await new Promise((resolve) => {
        woken = resolve;
        timer = setTimeout(resolve, Math.min(left, state.claimed ? REREAD : RETRY));
        if (signal?.aborted) resolve();
      });
      clearTimeout(timer);
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    sub.unsubscribe();
  }
}

/** Reads the records of a turn: its response, else whether it is claimed and its open questions. */
async function read(records, fingerprint) {
  const questions = new Map();
  let called = false; // a response without a call is left of an earlier turn
  let claimed = false; // with this data
  let first; // the response to other data
  for await (const { kind, fingerprint: print, event } of records) {
    const data = event?.data;
    if (kind === "tool_call") {
      called = true;
      claimed ||= !fingerprint || print === fingerprint;
    } else if (kind === "tool_response") {
      if (!fingerprint || (called && print === fingerprint)) return { response: readable(data) };
      if (called) first ??= { data, print };
    } else if (data?.awaiting_response) {
      questions.set(data.tool_call_id, data);
    } else if (data?.kind === "tool_call_ack") {
      questions.delete(data.tool_call_id);
    }
  }
  if (claimed || !first) return { claimed, questions: [...questions.values()] };
  if (!first.print) return { response: readable(first.data) };
  throw new ConflictError("the turn key was used before with other data, and this data does not run: use another key, or a run id");
}

function readable(data) {
  if (data) return data;
  throw new OneturnError("the turn has ended, and its response in the journal is damaged: see turnctl show");
}

function why({ claimed }) {
  return claimed ? "its tool runs, or waits for an answer" : "no worker has claimed it: none serves its workflow and pool, or all are busy";
}
