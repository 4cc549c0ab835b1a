// Package mcptool runs tools of MCP servers: processes that speak the Model Context Protocol on
// stdio, and servers of streamable HTTP.
//
// A [Tool] is one tool of a server. What a server has running, its sessions, is shared by the
// tools that name it ([Servers]): a session carries one call at a time, so that what comes on it
// besides the answer (progress, questions) can only belong to that call. A session is started
// when a call needs one, and ended when it was idle for a while, when its connection breaks, and
// when its call was given up: a call that did not end may still be at work there.
//
// What a server says of a tool is pinned: once it changes, the tool is refused. Arguments are
// checked here before they are sent, results after they have come.
//
// Only this package links the MCP SDK.
package mcptool
