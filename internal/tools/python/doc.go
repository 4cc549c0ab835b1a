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
package python
