package sim

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// Invariants of corrections, by the ledger of the model: what it is asked and when, and that what is stored is what it has replied. The test
// kit has the invariants of the records.

// checkAsking is called when the model is asked. The call is stored, its reply is not, and what it is asked to correct is the output before,
// as it is stored.
func (w *world) checkAsking(a *asked, call *tools.Call) {
	c := a.c
	fail := func(format string, args ...any) {
		w.violatef("%s: correction %d: "+format, append([]any{c.event.ID, a.n}, args...)...)
	}
	text := w.textOf(c)
	key := c.key.WithCall("c" + strconv.Itoa(a.n))
	if text == nil || w.stored(key.Public(events.RecordCall)) == nil {
		fail("the model is asked, and its call is not stored")
		return
	}
	if n := w.readText(text).Corrections; a.n < 1 || a.n > n {
		fail("the model is asked, and the text allows %d", n)
	}
	for _, other := range w.models {
		if other.c == c && other.n == a.n && other.by == a.by {
			fail("the model is asked twice by the worker that holds #%d/%d", a.by.m.seq, a.by.lease.Delivery)
		}
	}
	known := a.by.looked[checkpoint{key, events.RecordResponse}]
	if reply, _ := w.replyTo(c, a.n); reply != nil && reply.Seq <= uint64(known) && !a.by.sawStaleRead {
		fail("the model is asked by a worker that had read its reply")
	}
	output, feedback, ok := w.outputBefore(c, w.readText(text), a.n)
	if !ok {
		fail("the model is asked, and the output before has not failed")
		return
	}
	request, _ := call.Args["request"].(map[string]any)
	if request["output"] != output || request["feedback"] != feedback {
		fail("the model is asked to correct %q (%q), the output before is %q (%q)", request["output"], request["feedback"], output, feedback)
	}
}

// outputBefore returns the output that a correction is about, and what is wrong with it, false if nothing is.
func (w *world) outputBefore(c *chatMessage, text *events.Text, n int) (output, feedback string, ok bool) {
	given := text.Content
	unread := text.Unread
	if unread == nil {
		given = text.StructuredOutput
	}
	if n > 1 {
		_, read := w.replyTo(c, n-1)
		if read == nil {
			return "", "", false
		}
		given, unread = read.Content, read.Unread
	}
	if output, ok = given.(string); !ok {
		data, _ := events.AppendJSON(nil, given)
		output = string(data)
	}
	if text.Turn == "" {
		if unread == nil {
			return "", "", false
		}
		return strings.TrimSpace(output), feedbackIn(unread.Payload), true
	}
	h := w.history(c.turns[n-1])
	if len(h.responses) == 0 || !h.responses[0].Body.Correcting {
		return "", "", false
	}
	payload, _ := events.Decode(h.responses[0].Body.Payload)
	return strings.TrimSpace(output), feedbackIn(payload), true
}

func feedbackIn(payload any) string {
	object, _ := payload.(map[string]any)
	feedback, _ := object["feedback"].(string)
	return feedback
}

// checkCorrections checks the replies that are stored at the end of a schedule.
func (w *world) checkCorrections() {
	for _, c := range w.conversation {
		for n := 1; n <= mostCorrections; n++ {
			stored, read := w.replyTo(c, n)
			if stored == nil {
				continue
			}
			if !w.hasReplied(c, n, stored, read) {
				w.violatef("%s: the reply to correction %d is none that the model has given: %s", c.event.ID, n, stored.Data)
			}
			if len(c.turns) > n {
				w.checkCorrected(c.turns[n], n, stored, read)
			}
		}
	}
}

// hasReplied reports whether a stored reply is one of those that the model has given, and was read as it should.
func (w *world) hasReplied(c *chatMessage, n int, stored *response, read *events.Correction) bool {
	for _, a := range w.models {
		r := a.reply
		if a.c != c || a.n != n || r == nil {
			continue
		}
		if r.fails || read == nil {
			if r.fails && read == nil {
				return true
			}
			continue
		}
		usage := tools.Usage{Prompt: int(read.PromptTokens), Completion: int(read.CompletionTokens)}
		if reflect.DeepEqual(read.Content, r.content) && usage == r.usage && read.Final == r.final && (read.StructuredOutput != nil) == r.object {
			return true
		}
	}
	// A worker whose manifests have changed has stored that it has no tool for the model.
	return stored.Body.Code == string(events.CodeUnknownTool) && w.deployed()
}

// checkCorrected: the tool of the turn of a correction is entered with the object in the stored reply.
func (w *world) checkCorrected(t *turn, n int, stored *response, read *events.Correction) {
	if h := w.history(t); h.claim == nil || h.claim.Meta.Message != t.by.key.Turn {
		return
	}
	for _, e := range w.ledger {
		if e.turn != t.id.Turn {
			continue
		}
		var object map[string]any
		if read != nil {
			object, _ = read.StructuredOutput.(map[string]any)
		}
		if want, _ := events.AppendJSON(nil, object["v"]); object == nil || string(want) != e.data {
			w.violatef("%s: epoch %d entered its tool with %s, and the reply to correction %d has %s", t.id.Turn, e.epoch, e.data, n, stored.Data)
		}
	}
}

// countCorrections counts how corrections went.
func (w *world) countCorrections(counts map[string]int) {
	counts["corrections asked"] += len(w.models)
	for _, c := range w.conversation {
		for n := 1; n <= mostCorrections; n++ {
			stored, read := w.replyTo(c, n)
			switch {
			case stored == nil:
				continue
			case read == nil:
				counts["corrections that fail"]++
			case read.Unread != nil:
				counts["corrections that cannot be used"]++
			default:
				counts["corrections with an object"]++
			}
			if len(c.turns) > n {
				h := w.history(c.turns[n])
				if h.claim != nil && len(h.responses) > 0 && h.responses[0].code() == events.StatusOK {
					counts["corrected turns"]++
				}
			} else if r := w.stored(c.key.Public(events.RecordStructuredOutput)); r != nil && w.response(r).Body.Success {
				counts["corrected outputs"]++
			}
		}
	}
}
