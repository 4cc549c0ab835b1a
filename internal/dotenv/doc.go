// Package dotenv reads .env files as python-dotenv does, which wrote most of those that exist:
// quotes with escapes, values of several lines, export, comments, and ${NAME} and
// ${NAME:-default} in every value, quoted or not.
//
// Two things differ. A byte order mark is skipped, because it would become part of the first
// name. What python-dotenv leaves out with a line in the log, [File] lists: a tool without
// its variable fails later and elsewhere. Texts of this package name lines, never what stands
// in them: the rest of a key that was not quoted is a line, too.
//
// The Go libraries for such files read them by other rules (names without braces after $,
// none in single quotes, YAML, an error for the whole file), hence this one.
//
// read.go reads a file within its folder, parse.go its statements, expand.go the references in values.
package dotenv
