package agui_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
)

// What is accepted can be written, and is then accepted with the same meaning; what is refused is an InputError.
func FuzzReadInput(f *testing.F) {
	whole, err := json.Marshal(fullInput())
	require.NoError(f, err)
	f.Add(whole)
	f.Add([]byte(minimal))
	f.Add([]byte(`{"threadId":"t","runId":"r","messages":[{"id":"u","role":"assistant","content":null,"toolCalls":[null]}],"resume":null}`))
	f.Add([]byte(`{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":[{"type":"text","metadata":null}]}],"protocolVersion":"1.1"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := agui.ReadInput(bytes.NewReader(body), agui.InputLimits{})
		if err != nil {
			var refused *agui.InputError
			require.ErrorAs(t, err, &refused)
			require.Less(t, len(err.Error()), 1000)
			return
		}
		agui.NewVerifier(in)
		for _, m := range in.Messages {
			if _, err := json.Marshal(m); err != nil {
				return // a role of a later version
			}
		}
		written, err := json.Marshal(in)
		require.NoError(t, err)
		again, err := agui.ReadInput(bytes.NewReader(written), agui.InputLimits{Bytes: 1 << 24})
		require.NoError(t, err)
		require.Equal(t, in.Peer(), again.Peer())
		rewritten, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(written), string(rewritten))
	})
}

// Whatever texts contain, a reader of server-sent events gets the same events.
func FuzzStream(f *testing.F) {
	f.Add("17", "id", "a\r\n\ndata: x\u2028", `{"a":[1,"\n"]}`)
	f.Add("", "", "\x00\xff\ufeff", "null")
	f.Add("1\nevent: x", ":", "data:", "{ }\n")
	f.Fuzz(func(t *testing.T, id, message, delta, value string) {
		w := httptest.NewRecorder()
		s, err := agui.NewStream(w, agui.StreamOptions{})
		require.NoError(t, err)
		sent := []agui.Event{
			&agui.TextMessageContent{MessageID: message, Delta: delta},
			&agui.Custom{Name: message, Value: json.RawMessage(value)},
		}
		if err := s.SendWithID(id, sent...); err != nil {
			sent = sent[:strings.Count(w.Body.String(), "data: {")-strings.Count(delta+message, "data: {")]
		}
		frames, err := readFrames(w.Body.Bytes())
		require.NoError(t, err)
		require.Len(t, frames, len(sent))
		for i, frame := range frames {
			require.Equal(t, string(encode(t, sent[i])), frame.data)
			if i == 1 {
				require.Equal(t, id, frame.id)
			}
		}
	})
}

type frame struct{ id, data string }

// readFrames reads server-sent events the way clients do: lines end with a line feed, an empty line ends an event.
func readFrames(b []byte) ([]frame, error) {
	var frames []frame
	var current frame
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<24)
	lines.Split(scanLines)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case strings.Contains(lines.Text(), "\r"):
			return nil, errors.New("a carriage return")
		case lines.Text() == "":
			frames, current = append(frames, current), frame{}
		case name == "id":
			current.id = value
		case name == "data" && current.data == "":
			current.data = value
		default:
			return nil, errors.New("unexpected line " + lines.Text())
		}
	}
	return frames, lines.Err()
}

func scanLines(b []byte, _ bool) (int, []byte, error) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return i + 1, b[:i], nil
	}
	return 0, nil, nil
}
