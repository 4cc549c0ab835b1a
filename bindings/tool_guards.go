package bindings

import (
	"cmp"
	"strings"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/guards"
)

const exampleGuard = "guards: [{on: output, secrets: refuse}]"

// guards reads a list of guards. One that cannot be made costs the tool: it would do what the
// guard is there to prevent.
func (o *entryReader) guards(n *node) []guards.Guard {
	if !n.is(listNode) || len(n.items) > maxGuards {
		o.refusef(n.at(o.file), "wrong_shape", "write for example "+exampleGuard, "guards must be a list of at most %d", maxGuards)
		return nil
	}
	if o.guarded += len(n.items); o.guarded > maxEntries {
		o.refusef(n.at(o.file), "too_many_entries", "split the workflow", "the tools have more than %d guards together", maxEntries)
		return nil
	}
	all := make([]guards.Guard, 0, len(n.items))
	for _, item := range n.items {
		if item = o.object(item, "guard", exampleGuard); item == nil {
			continue
		}
		if g := o.guard(item); g != nil {
			all = append(all, g)
		}
	}
	return all
}

func (o *entryReader) guard(n *node) guards.Guard {
	d := guards.Declared{On: n.get("on").str(), Message: n.get("message").str()}
	before := o.problem
	o.problem = nil
	defer func() { o.problem = cmp.Or(before, o.problem) }()
	if s := n.get("schema"); !s.absent() {
		d.Schema = s.appendJSON(nil)
	}
	if w := n.get("when"); !w.absent() {
		if d.When = w.str(); d.When == "" {
			o.refusef(w.at(o.file), "bad_guard", "write for example when: args.amount > 100", "when must be a text")
		}
	}
	if s := n.get("secrets"); !s.absent() {
		if d.Secrets = s.str() == "refuse"; !d.Secrets {
			o.refusef(s.at(o.file), "bad_guard", "write secrets: refuse", "invalid secrets %s: must be refuse", s.shown())
		}
	}
	if b := n.get("max_bytes"); !b.absent() {
		d.MaxBytes = o.size(b, "max_bytes", maxOutput)
	}
	if o.problem != nil {
		return nil
	}
	g, err := guards.Compile(d)
	if err == nil {
		return g
	}
	at, message, fix := n.at(o.file), err.Error(), "write for example "+exampleGuard
	if wrong, ok := diag.Of(err); ok {
		message, fix = wrong.Field+": "+wrong.Message, wrong.Fix
		if part := n.get(wrong.Field); part != nil {
			at.line = part.line
		}
	}
	o.refusef(at, "bad_guard", fix, "a guard cannot be made: %s", strings.TrimSpace(message))
	return nil
}
