// Package process is what the child processes of a worker have in common, whatever protocol they
// speak: a separate process group, an environment built from an allow-list, and output that
// becomes a bounded part of the log.
package process
