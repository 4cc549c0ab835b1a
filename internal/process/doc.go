// Package process is what the child processes of a worker have in common, whatever protocol they
// speak: a separate process group, an environment built from an allow-list, and output that
// becomes a bounded part of the log.
//
// environ.go builds the environment, pipes.go connects a child, output.go reads output and logs it; group_linux.go, group_other_unix.go,
// group_unix.go and group_windows.go isolate a child and kill its group, as far as each system can.
package process
