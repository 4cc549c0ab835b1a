package toolbox

import (
	"context"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/tools"
)

// reaches says why a binding's tool cannot be reached from here at all, nil if it can.
func (b *Toolbox) reaches(binding *bindings.Binding) error {
	return unknown("this worker runs no %s tools", binding.Kind)
}

// make makes the invoker of a binding's target. It does no I/O.
func (b *Toolbox) make(binding *bindings.Binding) tools.Invoker {
	return unusable{unknown("this worker runs no %s tools", binding.Kind)}
}

// unusable is a tool that cannot be called.
type unusable struct{ err error }

// Invoke implements [tools.Invoker].
func (u unusable) Invoke(context.Context, *tools.Call) (tools.Result, error) {
	return tools.Result{}, u.err
}
