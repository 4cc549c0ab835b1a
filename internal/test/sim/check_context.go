package sim

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// Invariants of the context variables: the document of a chat has what the winning runs changed, in the order of the
// journal, and a tool that begins after a response sees its changes.

// shared is the context variable that all runs set; each turn has one besides.
const shared = "run"

func variableOf(turn string) string { return "run_of_" + turn }

// delta is what a run has changed, as it is in the journal.
type delta struct {
	Set map[string]json.Number `json:"set"`
}

// winner returns the change that counts: the run's whose response is stored, if it names one.
func (h *history) winner() *idempotency.Record {
	if len(h.responses) == 0 || len(h.responses[0].Body.Keys) == 0 {
		return nil
	}
	for _, d := range h.deltas {
		if d.Meta.Nonce == h.responses[0].Meta.Nonce {
			return d
		}
	}
	return nil
}

// checkContext reads the document of the chat back: what counts is merged, by the order of the
// journal, and nothing else is.
func (w *world) checkContext() {
	doc, err := variables.ReadContents(w.documents.data[subjects.ContextKey(app, chat)])
	if err != nil {
		w.violatef("the context variables cannot be read: %v", err)
		return
	}
	won := map[uint64]delta{}
	for i, t := range append(w.former, w.turns...) {
		h := w.history(t)
		d := h.winner()
		if d == nil {
			if len(h.responses) > 0 && len(h.responses[0].Body.Keys) > 0 {
				w.violatef("%s: the response names context variables that no delta holds", t.id.Turn)
			}
			continue
		}
		var set delta
		if err := json.Unmarshal(d.Data, &set); err != nil {
			w.violatef("%s: delta %d cannot be read: %v", t.id.Turn, d.Seq, err)
		}
		won[d.Seq] = set
		merged := doc.Values[variableOf(t.id.Turn)].Written == d.Seq && doc.Values[shared].Written >= d.Seq
		gone := t.purged || w.letters[h.newest.Seq] != "" // without its message it is merged when the variables are loaded
		if !merged && !gone && i >= len(w.former) {
			w.violatef("%s: the response names context variables that were not merged", t.id.Turn)
		}
	}
	for name, v := range doc.Values {
		if v.JSON == nil || name == stage || name == side { // see checkRevision
			continue
		}
		if set, ok := won[v.Written]; !ok || set.Set[name].String() != string(v.JSON) {
			w.violatef("context variable %s is %s by delta %d, whose run has not stored the response", name, v.JSON, v.Written)
		}
	}
}

// misledTurns counts the reads of all turns that were not answered as the journal was.
func (w *world) misledTurns() (n int) {
	for _, t := range w.turns {
		n += t.sawStaleRead
	}
	return n
}

// load has a tool read the context variables: it sees what all turns changed that had ended before.
func (w *world) load(ctx context.Context, call *tools.Call) {
	want := map[*turn]json.Number{}
	own := w.turnOf(call.Turn.Turn)
	for _, t := range w.turns {
		h := w.history(t)
		if d := h.winner(); d != nil && t.sawStaleRead == 0 {
			var set delta
			_ = json.Unmarshal(d.Data, &set) // the check at the end reads it
			want[t] = set.Set[shared]
		}
	}
	misled := w.misledTurns()
	vars, err := call.LoadContext(ctx)
	if err != nil || own.sawStaleRead > 0 || w.misledTurns() != misled { // by reads of turns whose changes were staged
		return
	}
	for t, value := range want {
		if name := variableOf(t.id.Turn); fmt.Sprint(vars[name]) != value.String() && t.sawStaleRead == 0 {
			w.violatef("%s: context variable %s was read as %v, and a turn that ended before has set it to %s", call.Turn.Turn, name, vars[name], value)
		}
	}
}
