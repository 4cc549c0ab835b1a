package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// The tools follow a script and keep the ledger: an entry for each run, with what it was given and what it returned. No
// fault can touch it.

// entry is one run of a tool in the ledger, which no fault can touch.
type entry struct {
	turn   string // turn key
	call   string // of a program, "" for the turn's own
	at     uint64 // how many records the journal had
	args   map[string]any
	tool   string
	data   string
	epoch  int
	token  uint64
	key    string          // idempotency key
	here   bindings.Effect // of the tool, as the manifests of its worker have it; "" if they have none
	nonce  string          // of the run, "" if its claim is not stored
	effect string          // that the run has, as its claim pins it
	result string          // "" while it runs: "ok", "user_error" or "stopped"
}

// tool is the tool of all agents: it takes a few steps, asks the questions of its script, and then
// returns, fails, or stops because its context has ended (some do not care).
type tool struct{ w *world }

// Invoke implements [tools.Invoker].
func (l tool) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	w, x := l.w, l.w.active
	x.yield("enter")
	switch call.Name {
	case deciderTool:
		value, err := l.judge()
		return tools.Result{Value: value}, err
	case correctorTool:
		value, err := l.correct(ctx, call)
		return tools.Result{Value: value}, err
	}
	if t := w.turnOf(call.Turn.Turn); t != nil && t.program != nil {
		return l.invokeStep(ctx, call, t)
	}
	e := l.enter(call)
	run := len(w.ledger)
	w.ledger = append(w.ledger, e)
	x.t.entry = e
	w.tracef("  %s: tool of %s entered (%s), epoch %d, run %d", x.p.name, e.turn, e.tool, e.epoch, run)
	w.checkNotEnded(e)
	if call.Epoch == 1 && w.chance(1, 2) { // a turn that was parked keeps the variables that it had
		w.load(ctx, call)
	}
	if t := w.turnOf(call.Turn.Turn); t != nil && t.script != nil {
		w.checkEntry(t, e)
		a := &asking{fiber: x, t: t, e: e, number: run, host: call.Host, script: t.script}
		if err := a.all(ctx); err != nil {
			e.result = "stopped"
			var coded *events.Error
			if errors.As(err, &coded) && coded.Code == events.CodeUserError {
				e.result = string(coded.Code)
			}
			w.tracef("  %s: run %d ends: %v", x.p.name, run, err)
			return tools.Result{}, err
		}
		return l.result(e, run), nil
	}
	obeys := w.chance(3, 4)
	for range w.rng.IntN(6) {
		x.yield("in the tool")
		if ctx.Err() != nil && obeys {
			e.result = "stopped"
			return tools.Result{}, context.Cause(ctx)
		}
	}
	if w.chance(1, 8) {
		e.result = string(events.CodeUserError)
		return tools.Result{}, errNo
	}
	return l.result(e, run), nil
}

var errNo = &events.Error{Code: events.CodeUserError, Msg: "no"}

// enter makes the entry of a run. Its fencing token is the sequence of the record that it owns
// the turn by.
func (l tool) enter(call *tools.Call) *entry {
	e := &entry{
		turn: call.Turn.Turn, tool: call.Name, data: fmt.Sprint(call.Args["v"]), epoch: call.Epoch, token: call.FencingToken, key: call.IdempotencyKey,
	}
	t := l.w.active.t
	e.at, e.args = uint64(len(l.w.store.log)), call.Args
	if b := t.p.manifest.tool(e.tool); b != nil && len(t.p.had) == t.manifests { // else it may have decided by others
		e.here = b.Effect
	}
	if n := int(e.token); n > 0 && n <= len(l.w.store.log) {
		e.nonce = l.w.store.log[n-1].Meta.Nonce
	}
	return e
}

func (l tool) result(e *entry, run int) tools.Result {
	e.result = events.StatusOK
	r := tools.Result{Value: json.RawMessage(fmt.Sprintf(`{"run":%d}`, run))}
	if l.w.chance(1, 4) {
		n := json.Number(strconv.Itoa(run))
		r.Set = map[string]any{shared: n, variableOf(e.turn): n}
	}
	return r
}

// asking is a run of a tool that asks.
type asking struct {
	*fiber

	t      *turn
	e      *entry
	number int
	host   tools.Host
	script *script
}

// all does the steps of the tool and asks its questions.
func (a *asking) all(ctx context.Context) error {
	for _, group := range a.script.groups() {
		if err := a.work(ctx, group[0]); err != nil {
			return err
		}
		if err := a.ask(ctx, group); err != nil {
			return err
		}
	}
	a.pass(end)
	if err := a.work(ctx, end); err != nil {
		return err
	}
	if a.w.chance(1, 8) {
		return errNo
	}
	return nil
}

// pass notes that the run goes past a question, or past all of them.
func (a *asking) pass(id string) {
	a.w.checkPass(a.t, id, a.e)
	a.w.passes = append(a.w.passes, pass{a.t, id, a.e})
}

// work takes a few steps, of which one may be durable.
func (a *asking) work(ctx context.Context, name string) error {
	for range a.w.rng.IntN(3) {
		a.yield("in the tool")
	}
	if !a.script.steps {
		return nil
	}
	done := false
	err := a.inHost(a.fiber, func() (err error) {
		_, done, err = a.host.StepResult(ctx, name)
		return err
	})
	if err != nil || done {
		return err
	}
	a.w.checkStep(a, name)
	a.yield("in step " + name)
	return a.inHost(a.fiber, func() error {
		_, err := a.host.StoreStep(ctx, name, json.RawMessage(strconv.Itoa(a.number)))
		return err
	})
}

// inHost calls the host. A timer that parks the turn waits for that.
func (a *asking) inHost(x *fiber, call func() error) error {
	x.inHost = true
	defer func() { x.inHost = false }()
	return call()
}

// ask asks questions, all at the same time, and waits until all are decided.
func (a *asking) ask(ctx context.Context, group []string) error {
	errs := make([]error, len(group))
	others := make([]*fiber, 0, len(group)-1)
	for i, id := range group[1:] {
		others = append(others, a.w.start(a.p, a.fiber.t, func(x *fiber) { errs[i+1] = a.askOne(ctx, x, id) }))
	}
	errs[0] = a.askOne(ctx, a.fiber, group[0])
	if len(others) > 0 {
		a.await("waits for the other questions", func() bool {
			for _, x := range others {
				if !x.over {
					return false
				}
			}
			return true
		})
	}
	return errors.Join(errs...)
}

// askOne asks one question. A tool that is impatient waits for no answer at all, and continues.
func (a *asking) askOne(ctx context.Context, x *fiber, id string) error {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	if a.script.impatient {
		x.leave = cancel
		defer func() { x.leave = nil }()
	}
	err := a.inHost(x, func() error {
		_, err := a.host.Ask(asking, a.script.question(id, a.number))
		return err
	})
	var coded *events.Error
	switch {
	case err == nil:
	case errors.As(err, &coded) && coded.Code == events.CodeExpired: // handed to the tool like an answer
	case asking.Err() != nil && ctx.Err() == nil && errors.Is(err, context.Canceled):
		a.t.left = true
		a.w.tracef("  %s: run %d waits no longer for %s", a.p.name, a.number, id)
		a.pass(id)
		return nil
	default:
		return err
	}
	a.w.tracef("  %s: run %d has the answer to %s", a.p.name, a.number, id)
	a.pass(id)
	return nil
}
