// Package secrets keeps the answers to secret questions out of everything that is stored,
// published or logged.
//
// A question is secret when its tool says so, or its payload does ([Asks]). Its answer is
// sealed with a key of [Keys] before the journal stores it, opened for the run of the tool that
// is handed it, and its strings are blotted out of all that this run says afterwards, by a
// [Scrubber]: results, context variables, progress, errors, and what is printed.
//
// Sealing protects what the server stores, its backups and its replicas from whoever can read
// those and not the key file. It does not protect from a worker or a tool: both hold the answer
// in the clear while the tool runs.
package secrets
