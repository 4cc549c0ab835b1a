package toolbox

import (
	"cmp"
	"context"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/agent"
	"github.com/oneturn/oneturn/internal/tools/httptool"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/internal/tools/natstool"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/subjects"
)

// reaches returns why a binding's tool cannot be reached from this worker, nil if it can.
func (b *Toolbox) reaches(binding *bindings.Binding) error {
	switch t := binding.Target.(type) {
	case *target.HTTP, *target.MCP:
		return nil
	case *target.Agent:
		if t.Completions != nil || t.NATS != nil && b.o.Conn != nil {
			return nil
		}
	case *target.NATS:
		if b.o.Conn != nil {
			return nil
		}
	}
	return unknown("this worker runs no %s tools", binding.Kind)
}

// make makes the invoker of a binding's target. It does no I/O.
func (b *Toolbox) make(binding *bindings.Binding) tools.Invoker {
	switch t := binding.Target.(type) {
	case *target.NATS:
		return b.nats(t)
	case *target.HTTP:
		return httptool.New(t, httptool.Options{})
	case *target.MCP:
		return mcptool.New(t, mcptool.Options{Servers: b.mcp})
	case *target.Agent:
		switch {
		case t.NATS != nil:
			return b.nats(t.NATS)
		case binding.Output != nil:
			return agent.New(t, agent.Options{Logger: b.o.Logger, Output: binding.Output.JSONSchema()})
		}
		return agent.New(t, agent.Options{Logger: b.o.Logger})
	}
	return unusable{unknown("this worker runs no %s tools", binding.Kind)}
}

func (b *Toolbox) nats(t *target.NATS) tools.Invoker {
	return natstool.New(t, natstool.Options{
		Conn: b.o.Conn, Logger: b.o.Logger, Reserved: []string{cmp.Or(b.o.Prefix, subjects.DefaultPrefix)}, MayReply: b.o.MayReply, Subjects: &b.subjects,
	})
}

// unusable is a tool that cannot be called.
type unusable struct{ err error }

// Invoke implements [tools.Invoker].
func (u unusable) Invoke(context.Context, *tools.Call) (tools.Result, error) {
	return tools.Result{}, u.err
}
