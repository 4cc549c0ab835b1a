package handlers

import (
	"sync/atomic"

	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/subjects"
)

// What a worker knows of a turn whose tool runs programs, in addition to what it knows of any turn.

// programTurn is that.
type programTurn struct {
	compiled   *compiledProgram // nil if this worker has not compiled its program before the claim
	newest     newest           // record of the turn that this worker knows of
	unreported []subjects.Key   // calls whose ends are not in the payload of its response, because this worker knows of none
	cancelled  string           // what its program had done when it was cancelled, "" if its outcome states that
}

// ofPrograms returns what is known of a turn whose tool runs programs. Steps use what it has returned when their program began.
func (t *turn) ofPrograms() *programTurn {
	if t.program == nil {
		t.program = &programTurn{}
	}
	return t.program
}

// compiledProgram is what the arguments of a turn were compiled to before it was claimed.
type compiledProgram struct {
	compiler *program.Compiler
	program  *flow.Program // nil if ask is not
	ask      *flow.Request
}

// compilerOf returns the compiler that has compiled the program of a turn before its claim, else a new one.
func (h *Handlers) compilerOf(t *turn) *program.Compiler {
	if t.program != nil && t.program.compiled != nil {
		return t.program.compiled.compiler
	}
	return h.compiler(t)
}

// newest is the sequence of the newest record that a worker knows of. Steps of a program note theirs at the same time.
type newest struct{ atomic.Uint64 }

func (n *newest) note(seq uint64) {
	for {
		known := n.Load()
		if seq <= known || n.CompareAndSwap(known, seq) {
			return
		}
	}
}
