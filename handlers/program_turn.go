package handlers

import (
	"sync/atomic"

	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/subjects"
)

// programTurn is what a worker knows of a turn whose tool runs programs, in addition to what it knows of any turn.
type programTurn struct {
	compiled   *compiledProgram // nil if this worker has not compiled its program before the claim
	newest     newest           // record of the turn that this worker knows of
	withoutEnd []subjects.Key   // calls that the payload of its response has no result of, because this worker knows of none
	cancelled  string           // what its program had done when it was cancelled, "" if its outcome states that
}

// programState returns what is known of a turn whose tool runs programs. It is called before the steps begin, which use t.program at
// the same time.
func (t *turn) programState() *programTurn {
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
