package gateway

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/feed"
	"github.com/oneturn/oneturn/subjects"
)

// A frame is an event as frontends get it: the stored envelope with its sequence, without what only workers need. What
// the source has hidden is never sent, live or on replay: the event itself has the decision.

// preparedFrame is [frameOf] of an event of a feed, made once for all sockets and streams.
func preparedFrame(e *feed.Event) ([]byte, error) { return e.Prepared(frameOfEvent) }

func frameOfEvent(e *feed.Event) ([]byte, error) {
	return frameOf(e.JSON, e.Name, e.Sequence, e.Replay)
}

// frameOf returns the frame of an event; nil for one that people may not see.
func frameOf(event []byte, name subjects.Record, sequence uint64, replay bool) ([]byte, error) {
	if name.Kind == events.RecordText {
		hidden, err := isHidden(event)
		if err != nil || hidden {
			return nil, err
		}
	}
	if name.Kind == events.RecordAsk {
		var err error
		if event, err = withoutSubject(event); err != nil {
			return nil, err
		}
	}
	event = bytes.TrimRight(event, " \t\r\n")
	if bytes.ContainsAny(event, "\r\n") { // a line of a stream has no line breaks
		var line bytes.Buffer
		if json.Compact(&line, event) != nil {
			return nil, errNotAnEvent
		}
		event = line.Bytes()
	}
	if len(event) < 2 || event[len(event)-1] != '}' {
		return nil, errNotAnEvent
	}
	frame := append(make([]byte, 0, len(event)+48), event[:len(event)-1]...)
	if sequence > 0 {
		frame = strconv.AppendUint(append(frame, `,"sequence":`...), sequence, 10)
	}
	if replay {
		frame = append(frame, `,"replay":true`...)
	}
	return append(frame, '}'), nil
}

var errNotAnEvent = &events.Error{Code: events.CodeStateCorrupt, Op: "read an event", Msg: "a stored event is not a JSON object"}

// isHidden reports whether a text is not for people: its trigger hides it, or its agent speaks in the background. What a
// user has written is hidden by a trigger alone.
func isHidden(event []byte) (bool, error) {
	var text struct {
		Data struct {
			Kind     string `json:"kind"`
			UIHidden bool   `json:"ui_hidden"`
			IsVisual *bool  `json:"is_visual"`
		} `json:"data"`
	}
	if err := json.Unmarshal(event, &text); err != nil {
		return true, errNotAnEvent
	}
	background := text.Data.IsVisual != nil && !*text.Data.IsVisual && text.Data.Kind != events.KindUserMessage
	return text.Data.UIHidden || background, nil
}

// withoutSubject removes the subject for answers from a question: frontends answer the gateway.
func withoutSubject(event []byte) ([]byte, error) {
	tree, err := events.Decode(event)
	if err != nil {
		return nil, errNotAnEvent
	}
	envelope, _ := tree.(map[string]any)
	data, _ := envelope["data"].(map[string]any)
	answer, _ := data["answer"].(map[string]any)
	delete(answer, "subject")
	return events.AppendJSON(make([]byte, 0, len(event)), tree)
}

// ownFrame is the frame of an event that the gateway itself makes.
func ownFrame(kind string, data any) ([]byte, error) {
	return encode(struct {
		Type      string `json:"type"`
		Data      any    `json:"data"`
		Timestamp string `json:"timestamp"`
	}{kind, data, time.Now().UTC().Format(time.RFC3339Nano)})
}
