package events

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// unreadable stands in the tree of a lenient parser for a value that [Decode] refuses.
type unreadable struct{}

// Addressee returns the turn that an event which starts one names although [DecodeTurn]
// refuses it: a number, a text or a time stamp in it cannot be used, a key is duplicate, a field has
// a wrong type, or it is nested too deeply. So the publisher can get a response. ok is false if the
// chat, the turn key or another part of the identity is missing or cannot be read.
// The kind is the one of the subject: it counts if the event has none.
//
// Only the identity and, if they can be read, workflow, agent, model, user and sequence are set. Data
// is the hash of the body, so that the same body has the same fingerprint.
func Addressee(body []byte, kind string) (t *StructuredOutputReady, ok bool) {
	p := parser{s: string(body), lenient: true}
	v, err := p.document()
	top, _ := v.(map[string]any)
	if err != nil || top == nil {
		return nil, false
	}
	f := fields{data: top}
	typed := f.text("type")
	if data, inside := top["data"].(map[string]any); inside && typed != "" {
		f.data = data
	}
	for _, named := range []string{typed, f.text("kind")} {
		if named = strings.TrimPrefix(named, TypePrefix); named == "" {
			continue
		}
		if kind = named; !TurnKind(kind) {
			return nil, false
		}
	}
	t = &StructuredOutputReady{TurnID: f.turnID("turn_idempotency_key", "context.turn_idempotency_key"), AutoToolMode: true, Plan: kind == KindPlanReady}
	t.ResumeOf = resumeOf(&f, kind)
	if f.err != nil || t.Chat == "" || t.Turn == "" || kind != KindPlanReady && kind != KindRetry && f.data["auto_tool_mode"] != true {
		return nil, false
	}
	t.Workflow, t.Agent = f.optionalText("context.workflow_name", "workflow_name"), f.optionalText("agent_name", "agent")
	switch kind {
	case KindPlanReady:
		t.Model = ModelPlan
	case KindRetry:
		t.Model = ModelRetry
	default:
		t.Model = f.optionalText("model_name")
	}
	t.UserID = f.optionalID("context.user_id")
	g := fields{data: f.data}
	t.TurnSequence = g.count("context.turn_sequence")
	sum := sha256.Sum256(body)
	t.Data = "sha256:" + hex.EncodeToString(sum[:])
	return t, true
}

// resumeOf returns what an unreadable retry names, or "?" if that cannot be read either: only a retry has such a name.
func resumeOf(f *fields, kind string) string {
	if kind != KindRetry {
		return ""
	}
	return cmp.Or(f.optionalText("resume_of"), "?")
}

// optionalText is text for what can be done without.
func (f *fields) optionalText(paths ...string) string {
	g := fields{data: f.data}
	if s := g.text(paths...); g.err == nil {
		return s
	}
	return ""
}

// skip steps over a value that holds no identity, or that the strict parser would refuse for what it
// is, if its end can be found, and reports whether it has.
func (p *parser) skip() bool {
	if p.pos >= len(p.s) {
		return false
	}
	strict, end := parser{s: p.s, pos: p.pos, depth: p.depth, nodes: p.nodes}, p.pos
	switch p.s[p.pos] {
	case '{', '[':
		if p.depth == 0 || p.depth <= len(p.path) && (p.path[p.depth-1] == "data" || p.path[p.depth-1] == "context") {
			return false // the identity is there, and nowhere deeper
		}
		end = closing(p.s, p.pos)
	case '"':
		if _, problem := strict.str(); problem == nil {
			return false
		}
		if end = endOfString(p.s, p.pos) + 1; end > len(p.s) {
			return false
		}
	default:
		for end < len(p.s) && !strings.ContainsRune(",]}: \t\r\n\"[{", rune(p.s[end])) {
			end++
		}
		if _, problem := strict.value(); problem == nil && strict.pos == end {
			return false
		}
	}
	if end <= p.pos {
		return false
	}
	p.pos = end
	return true
}

// closing returns the offset after the bracket that closes the one at text[at], -1 if there
// is none. Brackets in strings do not count.
func closing(text string, at int) int {
	const toClosing = 2 // in ASCII, from [ to ] and from { to }
	open, depth := text[at], 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = endOfString(text, i)
		case open:
			depth++
		case open + toClosing:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// endOfString returns the offset of the quote that ends the string at s[at], len(s) if there
// is none.
func endOfString(s string, at int) int {
	for i := at + 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(s)
}
