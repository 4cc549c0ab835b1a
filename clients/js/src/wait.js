// Waits until something is stored: live copies can be lost, so it is read from the workers as well.

import { NoWorkerError, WaitError } from "./errors.js";

const REREAD = 5_000;
const RETRY = 1_000; // while no worker answers, or soon is set

/**
 * Calls read until that returns {value}: at the start, when a live copy that is relevant arrives on the subject, and after a while.
 * Else read returns what is missing, {why, soon, questions}, of which onQuestion gets each question once.
 */
export async function until(nc, subject, { timeout = 60_000, onQuestion, signal }, read, relevant = () => true) {
  const end = Date.now() + timeout;
  const reported = new Set();
  let woken = () => {};
  let news = false; // a live copy has arrived since the last read
  const sub = nc.subscribe(subject, {
    callback: (error, message) => {
      if (!error && !relevant(message)) return;
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
      let state = { soon: true };
      let failed;
      try {
        state = await read();
      } catch (error) {
        if (!(error instanceof NoWorkerError)) throw error;
        failed = error;
      }
      if ("value" in state) return state.value;
      for (const question of state.questions ?? []) {
        if (reported.has(question.tool_call_id)) continue;
        reported.add(question.tool_call_id);
        await onQuestion?.(question);
      }
      const left = end - Date.now();
      if (left <= 0) throw failed ?? new WaitError(state.why);
      if (news) continue;
      let timer;
      await new Promise((resolve) => {
        woken = resolve;
        timer = setTimeout(resolve, Math.min(left, state.soon ? RETRY : REREAD));
        if (signal?.aborted) resolve();
      });
      clearTimeout(timer);
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    sub.unsubscribe();
  }
}
