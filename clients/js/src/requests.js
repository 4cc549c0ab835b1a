// The request API of workers.

import { NoWorkerError, OneturnError } from "./errors.js";
import { hex, sha256 } from "./wire.js";

const REQUEST_TIMEOUT = 5_000;

/** Sends a request to the workers and returns the reply: a message. */
export async function ask(nc, subject, request) {
  let reply;
  try {
    reply = await nc.request(subject, JSON.stringify(request), { timeout: REQUEST_TIMEOUT });
  } catch (error) {
    if (isNoResponders(error)) throw new NoWorkerError(`no worker answers on ${subject}: start one`, { cause: error });
    if (isTimeout(error)) throw new NoWorkerError(`no worker has answered on ${subject} in ${REQUEST_TIMEOUT} ms: try again`, { cause: error });
    throw error;
  }
  const refused = reply.headers?.get("Nats-Service-Error");
  if (refused) throw new OneturnError(`request API, ${subject}: ${refused}`);
  return reply;
}

/** Reads all pages of a verb, item by item. */
export async function* pages(nc, subject, request, key) {
  for (let from = request.from; ; ) {
    const page = (await ask(nc, subject, { ...request, from })).json();
    yield* page[key];
    if (!page.next) return;
    from = page.next;
  }
}

/** Reads bytes over 256 KiB, piece by piece, and checks them against the reference in the event. */
export async function readBlob(nc, subject, { $blob: blob, sha256: sum, size }) {
  const bytes = new Uint8Array(size);
  let length = 0;
  for (let from; ; ) {
    const reply = await ask(nc, subject, { blob, from });
    if (length + reply.data.length > size) break; // the hash differs then
    bytes.set(reply.data, length);
    length += reply.data.length;
    from = Number(reply.headers?.get("Oneturn-Next") || 0);
    if (from === 0) break;
  }
  if (hex(await sha256(bytes)) !== sum) throw new OneturnError(`blob ${blob}: its bytes do not match the event: read it again`);
  return bytes;
}

// By name: the connection may be of another copy of the NATS packages than the one of this module.

export function isNoResponders(error) {
  return isNamed(error, "NoResponders");
}

export function isTimeout(error) {
  return isNamed(error, "TimeoutError");
}

function isNamed(error, name) {
  for (; error; error = error.cause) if (error.name === name) return true;
  return false;
}
