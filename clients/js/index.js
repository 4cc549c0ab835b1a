// The client of oneturn: a producer of turns and messages. docs/wire-contract.md has the subjects and messages.
//
//   src/client.js   Client: publishes, waits, answers, cancels
//   src/response.js what a turn has stored; src/message.js the same of a message; src/wait.js: waiting for either
//   src/requests.js the request API of workers
//   src/wire.js     subjects, tokens, fingerprints, bodies; no I/O
//   src/errors.js   the errors
//   frontend.js     what a frontend shows of an event; no dependencies

export { Client } from "./src/client.js";
export { ConflictError, NoWorkerError, OneturnError, WaitError } from "./src/errors.js";
export { componentPayload, isShown } from "./frontend.js";
