import type { NatsConnection } from "@nats-io/nats-core";

export { componentPayload, isShown, type Event } from "./frontend.js";

export interface ClientOptions {
  /** Prefix of all names on NATS, "oneturn" by default. */
  prefix?: string;
  /** Pool of workers that messages go to, "default" by default. */
  pool?: string;
  /** Tenant of requests that name none, "default" by default. */
  app?: string;
}

/** The identity of a turn. */
export interface TurnId {
  app?: string;
  chat: string;
  /** Run of the chat: send it if turn keys repeat across runs. */
  run?: string;
  /** Turn key, unique in its chat and run. */
  turn: string;
}

export interface Turn extends TurnId {
  workflow: string;
  agent?: string;
  model?: string;
  /** The structured output of the agent. */
  data: unknown;
  userId?: string;
  /** Position in the chat. */
  sequence?: number;
  /** Snapshot of the context variables. */
  contextVariables?: Record<string, unknown>;
  /** Key of the turn that this one corrects. */
  correctionOf?: string;
}

/** The identity of a message. */
export interface MessageId {
  app?: string;
  chat: string;
  run?: string;
  /** Unique in its chat and run: a message is handled once. */
  id: string;
}

/** What an agent has written. */
export interface Message extends MessageId {
  workflow: string;
  agent: string;
  /** The text as the model has written it, or the object or list in it if it is parsed already. */
  content: string | Record<string, unknown> | unknown[];
  /** Why the model has stopped, such as "stop" or "length". */
  finishReason?: string;
  /** Turn key of the turn that the message may become. */
  turn?: string;
  userId?: string;
  sequence?: number;
  contextVariables?: Record<string, unknown>;
}

/** What a user has written. */
export interface UserMessage extends MessageId {
  workflow: string;
  userId?: string;
  content: string | Record<string, unknown> | unknown[];
  sequence?: number;
  contextVariables?: Record<string, unknown>;
}

/** What follows from a message: the data of its events, as docs/agent-messages.md has them. */
export interface MessageOutcome {
  /** chat.text or chat.user_message: what readers of the chat see, and what was found in the content. */
  text: {
    message_id: string;
    chat_id: string;
    agent: string;
    workflow_name: string;
    content: unknown;
    ui_hidden: boolean;
    is_visual: boolean;
    turn_idempotency_key?: string;
    structured_output?: unknown;
    repairs?: string[];
    warnings?: string[];
    [field: string]: unknown;
  };
  /** Of the turn that the message has made, or of its last correction. */
  response: Response | null;
  /** chat.structured_output, of an agent with a model and without an automatic tool. */
  output: { status: "ok" | "error"; success: boolean; payload: unknown; code?: string; content?: string; [field: string]: unknown } | null;
  /** chat.context_update: variables that the message has changed, in the order of the manifest. */
  updates: { variable: string; value: unknown; [field: string]: unknown }[];
  /** chat.handoff, the next speaker; null if the workflow has no handoff rules. `to` is null if the rules give no one, see `reason`. */
  handoff: { to: string | null; from: string; rule?: number; reason: string; code?: string; [field: string]: unknown } | null;
}

/** The inbound stream has stored a message. */
export interface Receipt {
  stream: string;
  sequence: number;
  /** The same message was stored within the last second. */
  duplicate: boolean;
}

/** The data of chat.tool_response: see docs/wire-contract.md. */
export interface Response {
  chat_id: string;
  turn: string;
  tool_call_id: string;
  status: "ok" | "error";
  success: boolean;
  content: string;
  payload: unknown;
  code?: string;
  [field: string]: unknown;
}

/** The data of chat.tool_call with awaiting_response. */
export interface AskedQuestion {
  tool_call_id: string;
  component_type: string;
  payload: Record<string, unknown>;
  answer: { subject: string; schema?: unknown; expires_at?: string };
  secret?: boolean;
  [field: string]: unknown;
}

/** A question as the request API lists it. */
export interface Question {
  state: string;
  tool_call_id: string;
  chat_id: string;
  turn: string;
  workflow_name: string;
  component_type: string;
  answer_subject: string;
  [field: string]: unknown;
}

export interface Answer {
  app?: string;
  chat: string;
  toolCallId: string;
  value: unknown;
  userId?: string;
  /** Run of the turn that asks: without it the question may have to be searched. */
  run?: string;
  /** Workflow and subject of the question. With both, no worker is needed to look it up. */
  workflow?: string;
  subject?: string;
}

/** What a worker has decided about an answer; status 200 is an acceptance. */
export interface Verdict {
  status: number;
  code: string;
  message?: string;
  tool_call_id: string;
  errors?: { path: string; rule: string; [field: string]: unknown }[];
}

/** Names a turn by its key, or by the tool_call_id of any of its events. */
export interface CancelRequest {
  app?: string;
  chat: string;
  run?: string;
  turn?: string;
  toolCallId?: string;
  workflow: string;
  reason?: string;
  userId?: string;
}

/** A stored event. */
export interface EventRecord {
  sequence: number;
  time: string;
  kind: string;
  fingerprint?: string;
  event: { type: string; data: Record<string, unknown>; timestamp: string } | null;
  code?: string;
}

export interface WaitOptions {
  /** In milliseconds, 60,000 by default. */
  timeout?: number;
  /** Called once for each open question of the turn, or of the turn of the message. The wait continues when it has returned. */
  onQuestion?: (question: AskedQuestion) => void | Promise<void>;
  signal?: AbortSignal;
}

/** Publishes turns and messages, waits for responses, answers questions. The connection stays the caller's. */
export class Client {
  constructor(nc: NatsConnection, options?: ClientOptions);
  /** Publishes a turn. Once it is stored it gets exactly one response; publishing it again is harmless. */
  publishTurn(turn: Turn): Promise<Receipt>;
  /** Publishes what an agent has written. A message id of a chat and run is handled once; publishing it again is harmless. */
  publishMessage(message: Message): Promise<Receipt>;
  /** Publishes what a user has written. */
  publishUserMessage(message: UserMessage): Promise<Receipt>;
  /**
   * Waits until all that follows from a message is stored. It fails with ConflictError if the key of its turn has other data and, with the
   * content of the message, if the id has other content. A turn that fails has no response if its workflow sends none to failures.
   */
  awaitMessage(message: Message | UserMessage | MessageId, options?: WaitOptions): Promise<MessageOutcome>;
  /** Waits for the response of a turn. With the turn's data it fails with ConflictError if only other data has a response. */
  awaitResponse(turn: Turn | TurnId, options?: WaitOptions): Promise<Response>;
  /** Publishes a turn and waits for its response. */
  runTurn(turn: Turn, options?: WaitOptions): Promise<Response>;
  /** Answers a question; the verdict need not be an acceptance. The timeout is in milliseconds, 10,000 by default. */
  answer(answer: Answer, options?: { timeout?: number }): Promise<Verdict>;
  /** Requests the end of a turn. A response that is stored already stays. */
  cancel(request: CancelRequest): Promise<Receipt>;
  /** Lists the open questions of a chat, or of the tenant without one. */
  questions(filter?: { app?: string; chat?: string }): AsyncGenerator<Question, void, void>;
  /** Lists the stored events of a chat in order, from a sequence. Needs the rights of a reader. */
  history(filter: { app?: string; chat: string; from?: number }): AsyncGenerator<EventRecord, void, void>;
  /**
   * Reads the context variables of a chat as they are now, by default with the declared ones of the workflow of its newest turn or
   * message. Needs the rights of an inspector.
   */
  context(filter: { app?: string; chat: string; workflow?: string }): Promise<ChatContext>;
  /** Fetches a payload or tool_args over 256 KiB, which an event replaces by {"$blob": …}. Needs the rights of a fetcher. */
  fetch(value: unknown, options?: { app?: string }): Promise<unknown>;
}

/** The context variables of a chat, and what was decided for its newest messages. */
export interface ChatContext {
  chat_id: string;
  workflow_name?: string;
  /** 0 if nothing is stored. */
  revision: number;
  variables: Record<string, unknown>;
  /** The sequence of the record that set a variable last; the others have their start values. */
  set?: Record<string, number>;
  private?: string[];
  omitted?: Record<string, number>;
  last_speaker?: string;
  run_id?: string;
  turn_sequence?: number;
  messages?: {
    message_id?: string;
    run_id?: string;
    sequence: number;
    out_of_order?: boolean;
    refused?: string;
    changed?: string[];
    handoff?: Record<string, unknown>;
  }[];
}

/** The base of all errors of this module. */
export class OneturnError extends Error {}
/**
 * The turn key was used before with other data: this data never runs, unless the workflow has `on_key_reuse: run`. Or the id of the message
 * was used before with other content, which changes nothing.
 */
export class ConflictError extends OneturnError {}
/** No worker answers requests. What was published stays stored until one runs. */
export class NoWorkerError extends OneturnError {}
/** The time to wait is over. Waiting again, or sending the message again, is harmless. */
export class WaitError extends OneturnError {}
