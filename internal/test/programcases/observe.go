package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// seen returns what was seen of a turn so far. Root is the tool_call_id of the turn.
func seen(records []Stored, entries []ledgerLine, root string) *Observed {
	o := &Observed{Records: len(records), AskCount: map[string]int{}}
	var begun time.Time
	for i := range records {
		r := &records[i]
		if begun.IsZero() {
			begun = r.At
		}
		if r.Kind == "takeover" {
			o.Takeover++
		}
		if r.Private {
			continue
		}
		call := r.call(root)
		switch r.Kind {
		case "ask":
			if o.AskCount[call] == 0 {
				o.Asked = append(o.Asked, call)
			}
			o.AskCount[call]++
		case "ack":
		default:
			o.Events = append(o.Events, Event{Kind: r.kind(), Call: call, Data: r.Event})
		}
		if r.Call != subjects.SingleCall {
			continue
		}
		switch r.Kind {
		case "tool_call":
			o.Rejected, _ = r.Event["rejected"].(bool)
		case "tool_response":
			o.Ended++
			o.Response, o.Took = r.Event, r.At.Sub(begun)
		}
	}
	_, o.Parked = parked(records)
	for _, e := range entries {
		o.Entries = append(o.Entries, Entry{
			Call: callOf(e.Call, root), Tool: e.Tool, Args: tree(e.Args), Key: e.Key, Token: e.Token, From: e.From, To: e.To,
		})
	}
	return o
}

// withoutTurn removes the id of the turn from the tool_call_ids of steps in a payload.
func withoutTurn(v any, root string) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withoutTurn(v[i], root)
		}
	case map[string]any:
		for key, in := range v {
			if id, ok := in.(string); ok && key == "exec_id" {
				v[key] = strings.TrimPrefix(id, root)
				continue
			}
			v[key] = withoutTurn(in, root)
		}
	}
	return v
}

// fetchPayload replaces a payload that is kept in a blob by what the blob has.
func fetchPayload(ctx context.Context, client *oneturn.Client, o *Observed) error {
	blob, large := events.BlobOf(o.Response["payload"])
	if !large {
		return nil
	}
	data, err := client.Blob(ctx, oneturn.BlobID{App: app, Blob: blob})
	if err != nil {
		return err
	}
	o.Response["payload"] = tree(json.RawMessage(data))
	return nil
}

// contextOf returns the context variables of a chat.
func contextOf(ctx context.Context, js jetstream.JetStream, space subjects.Space, chat string) (map[string]any, error) {
	kv, err := js.KeyValue(ctx, space.ContextBucket())
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the case
	}
	entry, err := kv.Get(ctx, subjects.ContextKey(app, chat))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return map[string]any{}, nil
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	var document map[string]struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(entry.Value(), &document); err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	values := map[string]any{}
	for name, v := range document {
		if v.Value != nil {
			values[name] = tree(v.Value)
		}
	}
	return values, nil
}

// statesIn returns the states of programs that workers have logged, in order.
func statesIn(folder string) (states []string, err error) {
	f, err := os.Open(filepath.Join(folder, fileLog))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		var line struct {
			Phase string `json:"phase"`
			State string `json:"state"`
		}
		if json.Unmarshal(scan.Bytes(), &line) == nil && line.Phase == "program.state" {
			states = append(states, line.State)
		}
	}
	return states, scan.Err()
}
