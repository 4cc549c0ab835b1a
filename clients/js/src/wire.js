// Names and bodies as docs/wire-contract.md defines them. No I/O.

const encoder = new TextEncoder();
const MAX_TOKEN = 64;

/** Subjects of an installation and a pool. Tenant, workflow and chat are ids. */
export class Subjects {
  constructor(prefix, pool) {
    this.prefix = prefix;
    this.pool = pool;
  }

  async inbound(kind, app, workflow, chat) {
    return `${this.prefix}.in.${this.pool}.${kind}.${await token(app)}.${await token(workflow)}.${await token(chat)}`;
  }

  async eventsOfTurn({ app, chat, run, turn }) {
    return `${this.prefix}.events.${await token(app)}.${await token(chat)}.${await turnToken(run, turn)}.>`;
  }

  async eventsOfChat(app, chat) {
    return `${this.prefix}.events.${await token(app)}.${await token(chat)}.>`;
  }

  async api(app, verb) {
    return `${this.prefix}.api.${await token(app)}.${verb}`;
  }

  async verdict(app) {
    return `${this.prefix}.verdict.${await token(app)}.${crypto.randomUUID()}`;
  }
}

/** The subject token of an id. */
export async function token(id) {
  if (!id) return "-";
  if (id === "-") return "=2D";
  let text = "";
  for (const byte of encoder.encode(id)) {
    const char = String.fromCharCode(byte);
    text += /[A-Za-z0-9_-]/.test(char) ? char : "=" + byte.toString(16).toUpperCase().padStart(2, "0");
  }
  return text.length <= MAX_TOKEN ? text : "==" + (await base64Hash(id)).slice(0, 22);
}

/** The token of a turn with a key, in a run of its chat. */
export function turnToken(run, turn) {
  return token(`${encoder.encode(run ?? "").length}-${run ?? ""}${turn}`);
}

/** The token of a message with an id, in the place of the token of a turn. */
export function messageToken(run, id) {
  return token(`message-${encoder.encode(run ?? "").length}-${run ?? ""}${id}`);
}

/** The value as JSON has it: what a worker will decode. */
export function plain(value) {
  return JSON.parse(JSON.stringify(value ?? null));
}

/** Canonical JSON of a value that plain has returned: sorted keys, no white space. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.keys(value).sort(byBytes).map((key) => `${canonical(key)}:${canonical(value[key])}`);
  return `{${members.join(",")}}`;
}

/** The order of two texts by their UTF-8 bytes, which is the order of their code points. */
function byBytes(a, b) {
  const left = [...a], right = [...b];
  for (let i = 0; i < left.length && i < right.length; i++) {
    if (left[i] !== right[i]) return left[i].codePointAt(0) - right[i].codePointAt(0);
  }
  return left.length - right.length;
}

/** The fingerprint of what is published, in hex: of [workflow, agent, model, data] for a turn. */
export async function fingerprint(...parts) {
  return hex(await sha256(encoder.encode(canonical(plain(parts)))));
}

export function hex(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The Nats-Msg-Id of a message with these ids. */
export async function msgID(pool, kind, ids, print) {
  const joined = [kind, ...ids].map((id) => `${encoder.encode(id ?? "").length}:${id ?? ""}`).join("");
  return (await base64Hash(joined)).slice(0, 22) + print.slice(0, 16) + (pool === "default" ? "" : `.${pool}`);
}

/** The body of an event of a kind; members that are undefined are left out. */
export function event(kind, data) {
  return JSON.stringify({ type: `chat.${kind}`, data: { kind, ...data }, timestamp: new Date().toISOString() });
}

export async function sha256(bytes) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

async function base64Hash(text) {
  const binary = String.fromCharCode(...(await sha256(encoder.encode(text))));
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
