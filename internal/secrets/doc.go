// Package secrets keeps the answers to secret questions out of everything that is stored,
// published or logged.
//
// A question is secret if its tool or its payload marks it so ([Asks], in secret_question.go and
// secret_fields.go). Its answer is sealed with a key of [Keys] (keys.go, seal.go; key_file.go reads and
// writes the file) before the journal stores it, and opened for the run of the tool that gets it. The
// secret answers of package redact replace its strings in all output of this run afterwards: results, context variables,
// progress, errors, and what is printed.
//
// Sealing protects what the server stores, its backups and its replicas from readers without the key
// file. It does not protect from a worker or a tool: both have the answer in the clear while the tool
// runs.
package secrets
