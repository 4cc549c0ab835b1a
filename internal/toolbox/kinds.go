package toolbox

import (
	"cmp"
	"context"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tools"
	"github.com/oneturn/oneturn/tools/natstool"
	"github.com/oneturn/oneturn/tools/target"
)

// reaches says why a binding's tool cannot be reached from here at all, nil if it can.
func (b *Toolbox) reaches(binding *bindings.Binding) error {
	if _, ok := binding.Target.(*target.NATS); ok && b.o.Conn != nil {
		return nil
	}
	return unknown("this worker runs no %s tools", binding.Kind)
}

// make makes the invoker of a binding's target. It does no I/O.
func (b *Toolbox) make(binding *bindings.Binding) tools.Invoker {
	if t, ok := binding.Target.(*target.NATS); ok {
		return natstool.New(t, natstool.Options{Conn: b.o.Conn, Logger: b.o.Logger, Reserved: []string{cmp.Or(b.o.Prefix, subjects.DefaultPrefix)}})
	}
	return unusable{unknown("this worker runs no %s tools", binding.Kind)}
}

// unusable is a tool that cannot be called.
type unusable struct{ err error }

// Invoke implements [tools.Invoker].
func (u unusable) Invoke(context.Context, *tools.Call) (tools.Result, error) {
	return tools.Result{}, u.err
}
