// Package answers checks and seals the answers to questions.
//
// A question may come with a JSON Schema for its answer. [Schemas] compiles such a schema when the question is asked,
// so that no question is asked that cannot be answered, and again when an answer arrives; it remembers the last ones
// (schemas.go). [Schemas.Check] validates an answer: the result is the content to store, or [InvalidError] with the
// violations (check.go). [For] is the same check for hosts without a worker (host_check.go). The violations of a secret answer name only what the schema already shows
// (secret_errors.go). [Seal] and [Open] encrypt the answers to secret questions for the journal (seal.go).
package answers
