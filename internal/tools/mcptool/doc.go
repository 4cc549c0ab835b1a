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
// tool.go and call.go have a call from its arguments to its result (result.go); server.go shares the sessions of a server
// and limits its starts; session.go is one session, on stdio_transport.go or http_transport.go (http_body.go); handshake.go decides how it
// begins; elicitation.go has the questions of servers; wire_compat.go repairs messages that the SDK does not accept.
//
// Only this package links the MCP SDK.
package mcptool
