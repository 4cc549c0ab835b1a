package target

import (
	"net/netip"
	"time"
)

// Target is where one tool is: a *[NATS], *[MCP], *[HTTP] or *[Agent].
type Target interface{ target() }

func (*NATS) target()  {}
func (*MCP) target()   {}
func (*HTTP) target()  {}
func (*Agent) target() {}

// NATS is an endpoint of a NATS service, by the conventions of nats.go's micro package.
type NATS struct {
	// Subject of the endpoint. Without one it is found by the names.
	Subject string
	// Service and Endpoint are the names that the service gives itself, to find the subject and
	// the metadata by. Endpoint defaults to Service's only one.
	Service, Endpoint string
	// Subjects are patterns of subjects where the service may be found, besides those below its
	// name. They may have the wildcards of NATS, except in the first token.
	Subjects []string
	// TrustMetadata takes the effect from the endpoint's metadata when the manifest names none.
	TrustMetadata bool
}

// MCP is a tool of an MCP server.
type MCP struct {
	Server *MCPServer
	Tool   string // its name on the server
	// Digest pins the tool: "sha256:" and the hex digest of its description by the server. Empty
	// takes the tool as it is found first, and refuses it once it changes.
	Digest string
}

// MCPServer is how an MCP server is reached: by a command (stdio) or a URL (streamable HTTP).
type MCPServer struct {
	Name    string   // as the manifest calls it
	Command []string // program and arguments, nothing is expanded
	Dir     string   // working directory of Command, absolute
	// Env is added to the few variables that any child process gets.
	Env     map[string]Value
	URL     string
	Headers map[string]Value
	Network Network // of URL
	// TrustAnnotations takes the effect of tools from their annotations where the manifest names
	// none: readOnlyHint is effect none, idempotentHint is idempotent.
	TrustAnnotations bool
	// Sessions is how many calls may run at the same time; 0 is 1 for a command, 8 for a URL.
	Sessions int
}

// HTTP is an endpoint that takes JSON and gives JSON.
type HTTP struct {
	Method  string // "" is POST
	URL     string // a constant: nothing of a call gets into it
	Headers map[string]Value
	Network Network
}

// Agent is a model, or another program, that answers instead of a function: a completions
// endpoint or a NATS request. One of both is set.
type Agent struct {
	ID          string // the tool is called agent:<ID>
	Completions *Completions
	NATS        *NATS
}

// Completions is a chat-completions endpoint as OpenAI has made it common.
type Completions struct {
	URL         string // of the endpoint, the path included: …/v1/chat/completions
	Model       string
	Headers     map[string]Value // Authorization, as a rule
	Network     Network
	System      string   // first message
	Temperature *float64 // nil leaves it to the server
	MaxTokens   int      // 0 leaves it to the server
}

// Network is which addresses a URL may lead to. The zero value is the safe choice: https,
// and nothing but public addresses.
type Network struct {
	AllowHTTP    bool           // http besides https
	AllowPrivate []netip.Prefix // private addresses that are allowed nevertheless
}

// Value is a setting that may be a secret: Text, or what a file holds.
type Value struct {
	Text   string
	File   string // absolute; read when it is needed, so that it can be replaced; the newline at its end is cut
	Prefix string // put before what the file holds: "Bearer "
}

// FileError is which file of a [Value] is unusable. It is for logs and for the author of the
// manifest: a response does not name files of the worker.
type FileError struct {
	File string
	Err  error // what is wrong with it
}

func (e *FileError) Error() string { return e.File + ": " + e.Err.Error() }

func (e *FileError) Unwrap() error { return e.Err }

// HostError is at which host and port a request failed. It is for logs and for the author of the
// manifest: the reader of a response need not know where endpoints are.
type HostError struct{ Host string }

// Error implements error.
func (e *HostError) Error() string { return "at " + e.Host }

// Limits of a tool. A zero field sets no limit.
type Limits struct {
	Tool   Limit // all calls of the tool
	Tenant Limit // the calls for one tenant
	Output int   // bytes of the result
}

// Limit bounds calls.
type Limit struct {
	Concurrency int // at the same time, in one worker
	Rate        Rate
}

// Rate is how many calls may begin in a time, over all workers.
type Rate struct {
	Calls int // 0 = unlimited
	Per   time.Duration
	Burst int // how many may begin at the same time; 0 is Calls
}
