// Package mcptool runs tools of MCP servers: processes that speak the Model Context Protocol on
// stdio, and servers of streamable HTTP.
//
// A [Tool] is one tool of a server. What a server has running, its sessions, is shared by the
// tools that name it ([Servers]): a session carries one call at a time, so that what comes on it
// besides the answer (progress, questions) can only belong to that call. A session is started
// when a call needs one, and ended when it was idle for a while, when its connection breaks, and
// when its call was cancelled: a call that did not end may still run there.
//
// The description of a tool is pinned: once it changes, the tool is refused. Arguments are
// checked here before they are sent, results after they have come.
//
// In the order in which a call meets them:
//
//   - tool.go: [Tool], its Invoke, and the description that it is pinned to (digest.go).
//   - shared_servers.go, options.go: [Servers], which tools share, and the options of both.
//   - server.go: the sessions of one server: lent to calls, started, delayed after failures, ended.
//   - send.go, call_meta.go: one call on one session, and what identifies it there.
//   - active_call.go: the state of a call that a session carries.
//   - session.go, handshake.go, tool_list.go: one session: how it begins, which tools its server has, how it ends.
//   - sdk_call.go: functions of the MCP SDK run in separate goroutines.
//   - stdio_transport.go, stdio_messages.go: the process of a server, and the messages in its output.
//   - http_transport.go, http_body.go: streamable HTTP, and the messages in its answers.
//   - watch_messages.go, wire_compat.go: what is read in messages before the SDK does, and what is repaired in them.
//   - elicitation.go: questions of servers to people.
//   - result.go, step_result.go, failure.go: results, of turns and of steps of programs, and errors.
//
// Only this package links the MCP SDK.
package mcptool
