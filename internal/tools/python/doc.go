// Package python runs Python functions as tools: a [Pool] keeps child processes for each
// workflow, so that a warm call starts no process. The host script is part of this package
// and needs nothing but Python 3.9 or newer.
//
// # Calls
//
// A child runs one sync function at a time, on its main thread. Async functions share the
// event loop of that thread, up to 64 at the same time; calls of other functions use other children while
// there are any, and avoid one whose loop is blocked. Generators run to their end, and what they yield is
// progress. Between calls the child restores what they have changed of the process. A call waits for a free child and for the import of its
// file; then the child reports that it enters the function, and the pool calls [tools.Call.Enter].
// A call without this report was not entered: when its child dies it runs in
// another one, up to three times.
//
// A file is executed once in a child, as the module workflows.<Name>.tools.<file>, so relative
// imports, absolute imports of that name and imports of files next to it all work, and none of them
// hides a module that is installed; [Pool.Renew]
// brings changed files in. The working folder is the parent of the workflows folder.
//
// # Questions
//
// A call reaches its [tools.Call.Host] by frames: it asks, shows, dismisses, reports progress and
// stores steps, up to 64 operations at the same time, each with a number that the reply repeats. A call with open
// questions takes no slot: others run in its process, sync ones on separate threads while the
// main thread waits, and it continues next to them. When its context ends, for example because its turn
// is parked ([tools.ErrParked]), what it waits for raises asyncio.CancelledError, and so does all
// operations that it tries afterwards.
//
// # Failures
//
// Exceptions keep their text: ValueError and oneturn.UserError are user_error, arguments that
// do not fit the signature are bad_args, oneturn.RetryableToolError is marked with
// [tools.Retryable], everything else is tool_error; the chain holds an [ExceptionError]. A process
// that dies, or that does not return a call within [Options].Grace after its context has
// ended, or does not get to enter it within [Options].LoadTimeout, is killed with its whole
// process group and replaced; one that is no longer used has two seconds to end by itself. Changes of context variables count only if the function returned.
//
// # Isolation
//
// A child gets a few variables of the worker's environment, the ones that [Options].Env names, and the
// .env file of its workflow; names that begin with ONETURN_ or NATS_ come from that file
// only. Frames travel on file descriptors 3 and 4; what tools print becomes log records that
// name the call, with the values of the .env file redacted. What their subprocesses write to
// the same streams names none.
//
// # Files
//
// In the order in which a call meets them:
//
//   - pool.go: [Pool], its options, the versions of workflows, [Pool.Tool] and its Invoke.
//   - child_group.go, slot.go: the children of one version, and which of them gets a call.
//   - child.go, pending_call.go: one child, and a call that it has taken, from its frame to its reply.
//   - replace.go: when and how a child is replaced: all reasons, and the end of a process.
//   - launch.go: starts a process and supervises it: pipes, readers, the writer.
//   - boot.go, frame.go: the first frame of a process, which holds the host; the frames after it.
//   - operations.go: what a call asks of its host: questions, progress, steps.
//   - output.go: what tools print becomes log records, without secrets.
//   - failure.go: errors of calls.
//   - interpreter.go, trusted_interpreter.go, environ.go: which Python runs, and with which environment.
//   - inspect.go: signatures of Python files, read without running them (inspect/*.py).
//
// The host (host/*.py) is the script of a child. host/boot.py loads its modules in the order of boot.go, then host/serve.py takes
// calls:
//
//   - serve: takes frames, runs calls on the main thread, its event loop, or other threads, and replies. With
//     event_loops (the two loops of a process), blocked_loop (detects a call that blocks one) and
//     restore_process (undoes what a call has changed of the process).
//   - load: finds and imports the file of a tool. With checked_sources (files as they were checked),
//     workflow_imports (imports among them) and multiprocessing_spawn (the same in processes that tools start).
//   - tool_function: the function of a tool, and its arguments. With type_hints, build_values,
//     build_scalars and build_pydantic (values of the types that hints name), build_limits (their bounds).
//   - api, questions, generators, shims: what tools import: module oneturn, its questions and steps, tools that
//     yield, stand-ins for modules of MozaiksAI. operations has the requests to the worker below them.
//   - context_variables, encode, dataframes, output, frames: variables, results, printed lines, frames.
package python
