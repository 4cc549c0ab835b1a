package redact

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/oneturn/oneturn/events"
)

// This file collects what is secret in the answers that a call receives (AddSecret), except what reads like an outcome or
// a field name, and redacts it in texts, value trees and JSON. Short secrets only match whole strings.

// Bounds of what is searched for.
const (
	minLine    = 8        // bytes of a line of a secret of many lines that is searched for by itself
	maxStrings = 256      // strings of one call
	maxBytes   = 16 << 10 // all of them
	longText   = 1 << 10  // bytes from which on a text may have been cut
)

// SecretAnswers are the secret answers that one call got, redacted in what the call reports. Without one this
// does nothing and costs nothing. The zero value is ready, a nil one has no secrets; it is safe for
// concurrent use.
type SecretAnswers struct {
	mu    sync.Mutex // held while learning
	known atomic.Pointer[known]
}

// known is what SecretAnswers search for. It does not change.
type known struct {
	inside map[string]struct{} // secrets that are searched for inside texts
	whole  map[string]struct{} // short ones
	size   int
	find   Set
	all    bool // too much to search for: every text is a secret
}

// Active reports whether there is anything to redact.
func (a *SecretAnswers) Active() bool { return a != nil && a.known.Load() != nil }

// AddSecret records the strings and numbers of a secret answer, and names of its entries that do not read
// like names of fields. What the payload of its question contains is not secret, and neither are texts
// that describe the answer (status, action, ids). It must be called before the tool gets the answer.
//
// If an answer is too large to search for, every text of the call becomes a secret.
func (a *SecretAnswers) AddSecret(answer, question []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := &known{inside: map[string]struct{}{}, whole: map[string]struct{}{}}
	if old := a.known.Load(); old != nil {
		k.size, k.all = old.size, old.all
		maps.Copy(k.inside, old.inside)
		maps.Copy(k.whole, old.whole)
	}
	tree, err := events.Decode(answer)
	k.all = k.all || err != nil
	public := map[string]struct{}{}
	if asked, err := events.Decode(question); err == nil {
		scalars("", asked, func(_, text string) { public[text] = struct{}{} })
		names(asked, func(name string) { public[name] = struct{}{} })
	}
	scalars("", tree, func(name, text string) {
		if _, ok := public[text]; !ok && !isPlainWord(name, text) {
			k.addSecret(text)
		}
	})
	names(tree, func(name string) {
		if _, ok := public[name]; !ok && !plainName(name) {
			k.addSecret(name)
		}
	})
	if k.all = k.all || len(k.inside)+len(k.whole) > maxStrings || k.size > maxBytes; k.all {
		k.inside, k.whole = nil, nil
	}
	k.find = New(Options{}, slices.Collect(maps.Keys(k.inside))...)
	if k.all || len(k.inside)+len(k.whole) > 0 {
		a.known.Store(k)
	}
}

// scalars calls each for all strings and numbers of a tree, with the name of the entry they
// are the value of.
func scalars(name string, v any, each func(name, text string)) {
	switch v := v.(type) {
	case string:
		each(name, v)
	case json.Number:
		each(name, v.String())
	case []any:
		for _, one := range v {
			scalars(name, one, each)
		}
	case map[string]any:
		for name, one := range v {
			scalars(name, one, each)
		}
	}
}

// names calls each for the names of all entries of a tree.
func names(v any, each func(name string)) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			names(one, each)
		}
	case map[string]any:
		for name, one := range v {
			each(name)
			names(one, each)
		}
	}
}

// plainName reports whether the name of an entry reads like the name of a field: words of letters,
// joined by case or underscores, with numbers as separate words.
func plainName(name string) bool {
	const longest = 32
	for word := range strings.SplitSeq(name, "_") {
		letters := strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
		number := len(word) <= 2 && strings.Trim(word, "0123456789") == ""
		if !letters && !number {
			return false
		}
	}
	return len(name) <= longest
}

// isPlainWord reports whether an entry of an answer is the outcome of the question, or its id. Tools
// return such words themselves: "status": "ok".
func isPlainWord(name, text string) bool {
	switch strings.ToLower(strings.NewReplacer("_", "").Replace(name)) {
	case "status", "action", "decision", "type", "kind":
		const longest = 32
		plain := strings.IndexFunc(text, func(r rune) bool { return r != '_' && r != ' ' && (r < 'A' || r > 'Z' && r < 'a' || r > 'z') }) < 0
		return plain && len(text) <= longest
	case "eventid", "uieventid", "uitoolid", "toolcallid", "callid", "corr", "requestid", "agentmessageid", "chatid", "workflowname":
		return true
	}
	return false
}

func (k *known) addSecret(text string) {
	k.add(text)
	if !strings.Contains(strings.TrimSpace(text), "\n") {
		return
	}
	for line := range strings.Lines(text) { // what is printed is read by lines
		if len(strings.TrimSpace(line)) >= minLine {
			k.add(line)
		}
	}
}

func (k *known) add(text string) {
	text = strings.Clone(strings.TrimSpace(text)) // tools trim what people type
	to := k.inside
	switch {
	case k.all || text == "" || strings.Contains(Replacement, text):
		return
	case len(text) < Shortest:
		to = k.whole
	}
	if _, ok := to[text]; ok {
		return
	}
	if k.size += len(text); k.size > maxBytes {
		k.all = true
		return
	}
	to[text] = struct{}{}
}

// Text redacts secrets in a text. A long one may have been cut within a secret: then the rest of that is
// redacted too.
func (a *SecretAnswers) Text(text string) string {
	if !a.Active() {
		return text
	}
	return a.known.Load().text(text, false)
}

// Cut is [SecretAnswers.Text] of a text that was cut at its end.
func (a *SecretAnswers) Cut(text string) string {
	if !a.Active() {
		return text
	}
	return a.known.Load().text(text, true)
}

func (k *known) text(text string, cut bool) string {
	if k.all && text != "" {
		return Replacement
	}
	body, found := strings.CutSuffix(strings.ToValidUTF8(text, "\ufffd"), "…")
	if !cut && !found && len(text) < longText {
		return k.find.Text(body)
	}
	body = k.find.Cut(body)
	if found {
		body += "…"
	}
	return body
}

// Value redacts secrets in a JSON value tree, including names of entries, and returns another one: the
// tree itself is unchanged.
func (a *SecretAnswers) Value(tree any) any {
	if !a.Active() {
		return tree
	}
	return a.known.Load().value(tree)
}

func (k *known) value(v any) any {
	switch v := v.(type) {
	case string:
		if _, ok := k.whole[strings.TrimSpace(v)]; ok {
			return Replacement
		}
		return k.text(v, false)
	case json.Number:
		_, short := k.whole[v.String()]
		_, long := k.inside[v.String()]
		if short || long || k.all {
			return Replacement
		}
		return v
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = k.value(one)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, one := range v {
			name = k.name(name)
			if _, taken := out[name]; taken {
				name = fmt.Sprintf("%s %d", name, len(out))
			}
			out[name] = k.value(one)
		}
		return out
	}
	return v
}

// name redacts the name of an entry. If there is too much to search for, names that read like names of
// fields stay.
func (k *known) name(name string) string {
	if k.all && plainName(name) {
		return name
	}
	return k.text(name, false)
}

// JSON redacts secrets in a JSON document. One that cannot be read becomes a secret itself.
func (a *SecretAnswers) JSON(data json.RawMessage) json.RawMessage {
	if !a.Active() || len(data) == 0 {
		return data
	}
	tree, err := events.Decode(data)
	if err == nil {
		data, err = events.AppendJSON(nil, a.Value(tree))
	}
	if err != nil {
		return json.RawMessage(`"` + Replacement + `"`)
	}
	return data
}
