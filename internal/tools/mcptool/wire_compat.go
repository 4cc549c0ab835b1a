package mcptool

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/oneturn/oneturn/internal/excerpt"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// Messages that servers send and the SDK does not accept: admit repairs ids and versions, and makes an error of an
// answer that is not JSON, so that its call ends immediately.

// wire has the relevant fields of a message.
type wire struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

func (w *wire) answers() bool { return w.Method == "" && (w.Result != nil || present(w.Error)) }

func present(raw json.RawMessage) bool { return raw != nil && !bytes.Equal(raw, []byte("null")) }

// sending records a message to the server: the SDK numbers its requests.
func (s *session) sending(msg []byte) {
	s.probe.sent(msg)
	if !bytes.Contains(msg, []byte(`"method"`)) {
		return
	}
	var w wire
	if json.Unmarshal(msg, &w) != nil || w.ID == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = w.ID
}

// admit makes a message of the server acceptable to the SDK, nil if the SDK must not see it. Servers
// return ids as texts, omit the protocol's name, and write what is not JSON: that becomes an
// error of the request immediately, where the SDK would wait for its answer.
func (s *session) admit(msg []byte) []byte {
	trimmed := bytes.TrimPrefix(bytes.TrimSpace(msg), []byte("\xef\xbb\xbf"))
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return msg
	}
	var w wire
	if err := json.Unmarshal(trimmed, &w); err != nil {
		if failed := s.unreadable(trimmed); failed != nil {
			return failed
		}
		return msg
	}
	if !w.answers() {
		return msg
	}
	changed := w.Version != "2.0" || msg[0] == 0xef
	var text string
	switch {
	case !present(w.ID):
		s.mu.Lock()
		w.ID, changed = s.last, true
		s.mu.Unlock()
	case w.ID[0] == '"' && json.Unmarshal(w.ID, &text) == nil:
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			w.ID, changed = json.RawMessage(text), true
		}
	}
	if s.probe.answer(w.ID, !present(w.Error)) {
		return nil
	}
	if !changed || w.ID == nil {
		return msg
	}
	return answer(w.ID, w.Result, w.Error)
}

// answer writes an answer.
func answer(id, result, failure json.RawMessage) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	if present(failure) {
		out = append(append(out, `,"error":`...), failure...)
	} else {
		out = append(append(out, `,"result":`...), result...)
	}
	return append(out, '}')
}

// codeUnreadable is the code of the error that an answer becomes that cannot be read.
const codeUnreadable = -32700

// unreadable makes an error of an answer to the last request that is not JSON; nil if it is
// something else.
func (s *session) unreadable(trimmed []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || !regexp.MustCompile(`"id"\s*:\s*"?`+regexp.QuoteMeta(string(s.last))+`"?\s*[,}]`).Match(trimmed) {
		return nil
	}
	s.garbled = "its answer is not JSON: " + notJSON(trimmed)
	text, err := json.Marshal(s.garbled)
	if err != nil { // a string has a JSON form
		return nil
	}
	return answer(s.last, nil, []byte(`{"code":`+strconv.Itoa(codeUnreadable)+`,"message":`+string(text)+`}`))
}

// unreadableReason is why the last answer could not be read; "" if it could.
func (s *session) unreadableReason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.garbled
}

// notJSON is why a text is not JSON.
func notJSON(text []byte) string {
	if _, why := target.JSON(text); why != "" {
		return excerpt.Line(why, maxText)
	}
	return "it cannot be read"
}
