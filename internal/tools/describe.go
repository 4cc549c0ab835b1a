package tools

import (
	"context"
	"encoding/json"
)

// Description is what an invoker has learned of what it calls: from a service, a server or a Go
// type.
type Description struct {
	Text          string
	Input, Output json.RawMessage // JSON Schemas, nil if unknown
	// Effect of calling it twice, by the words of manifests; "" if it is unknown or is not to be
	// believed.
	Effect  string
	Version string // changes when what is called does; "" if unknown
	// Unchecked names the rules of Input and Output that only what is called can check, each with its place.
	Unchecked []string
}

// Describer is an [Invoker] that can describe what it calls.
type Describer interface {
	Invoker
	// Describe asks what is called, or returns what is known if that is recent.
	Describe(ctx context.Context) (Description, error)
	// Known is the last description, without asking; false if there is none yet.
	Known() (Description, bool)
}

// Closer is an [Invoker] that owns processes or connections.
type Closer interface {
	Invoker
	// Close ends them once the calls under way have ended, or ctx has.
	Close(ctx context.Context) error
}
