package program

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
)

// Catalog compiles the schemas of the tools of a binding set, once for all programs: a tool is compiled when a program first names it,
// and again when it reports other schemas than before. It has at most one entry for each binding of the set. It is safe for concurrent use.
type Catalog struct {
	set      *bindings.Set
	describe Describe

	mu       sync.Mutex
	compiled map[*bindings.Binding]*catalogEntry
}

// catalogEntry is a tool without its effect, and the schemas that it was compiled from.
type catalogEntry struct {
	input, output json.RawMessage
	tool          flow.Tool
}

// NewCatalog returns a catalog of the tools of a set. Describe may be nil.
func NewCatalog(set *bindings.Set, describe Describe) *Catalog {
	return &Catalog{set: set, describe: describe, compiled: make(map[*bindings.Binding]*catalogEntry)}
}

// Set returns the set whose tools the catalog has.
func (c *Catalog) Set() *bindings.Set { return c.set }

// Compiler returns the compiler of a tool that runs programs.
func (c *Catalog) Compiler(b *bindings.Binding, agent string, depth int) *Compiler {
	return &Compiler{Binding: b, Agent: agent, Tools: c.Tools(b, agent), Depth: max(1, depth), Limits: LimitsOf(b)}
}

// tool returns what the compiler has to know of a tool of the set, as its manifest describes it, or as it describes itself now.
func (c *Catalog) tool(b *bindings.Binding) flow.Tool {
	d := described(b, c.describe)
	c.mu.Lock()
	entry := c.compiled[b]
	c.mu.Unlock()
	if entry == nil || !bytes.Equal(entry.input, d.Input) || !bytes.Equal(entry.output, d.Output) {
		entry = &catalogEntry{input: d.Input, output: d.Output, tool: compileTool(b, d)} // several callers may compile the same
		c.mu.Lock()
		c.compiled[b] = entry
		c.mu.Unlock()
	}
	tool := entry.tool
	tool.Effect = events.Effect(d.Effect)
	return tool
}
