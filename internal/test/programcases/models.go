package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Models is a server with the chat-completions endpoints of the planner and the responder of a case. Each answers
// with the replies of its script, one a call.
type Models struct {
	server *http.Server
	url    string

	mu     sync.Mutex
	script map[string]Script   // by plan, respond
	calls  map[string]int      // by the same
	saw    map[string][]string // the texts of each call; under plan_system only the system texts
}

// modelPath is the path of an agent's endpoint.
func modelPath(agent string) string {
	if agent == plannerName {
		return "/plan"
	}
	return "/respond"
}

// startModels starts the models of a case on a free port.
func startModels(c *Case) (*Models, error) {
	m := &Models{
		script: map[string]Script{"plan": c.Planner, "respond": c.Respond},
		calls:  map[string]int{}, saw: map[string][]string{},
	}
	server, url, err := serveLocally(m)
	m.server, m.url = server, url
	return m, err
}

// serveLocally serves HTTP on a free port of the loopback interface.
func serveLocally(h http.Handler) (s *http.Server, url string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it takes no time
	if err != nil {
		return nil, "", fmt.Errorf("listen: %w", err)
	}
	s = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			panic(err) // the listener is open
		}
	}()
	return s, "http://" + l.Addr().String(), nil
}

// ServeHTTP implements [http.Handler].
func (m *Models) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<20)).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var all, system []string
	for _, message := range request.Messages {
		all = append(all, message.Content)
		if message.Role == "system" {
			system = append(system, message.Content)
		}
	}
	content, failure := m.reply(strings.TrimPrefix(r.URL.Path, "/"), strings.Join(all, "\n"), strings.Join(system, "\n"))
	answer := encoded(map[string]any{"choices": []any{map[string]any{
		"message": map[string]any{"role": "assistant", "content": content}, "finish_reason": "stop",
	}}})
	w.Header().Set("Content-Type", "application/json")
	if failure != "" {
		w.WriteHeader(http.StatusInternalServerError)
		answer = encoded(map[string]any{"error": map[string]any{"message": failure}})
	}
	_, _ = w.Write(answer) // the caller may be gone
}

// reply returns the next reply of a model, or the text of its error.
func (m *Models) reply(model, all, system string) (content, failure string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.calls[model]
	m.calls[model]++
	m.saw[model] = append(m.saw[model], all)
	m.saw[model+"_system"] = append(m.saw[model+"_system"], system)
	replies := m.script[model].Replies
	if n >= len(replies) {
		return "", fmt.Sprintf("call %d of %s, the case has %d replies", n+1, model, len(replies))
	}
	reply := replies[n]
	if reply.Text != nil {
		return *reply.Text, ""
	}
	return string(reply.JSON), reply.Error
}

// observe adds what the models saw.
func (m *Models) observe(o *Observed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o.AICalls, o.AISaw = map[string]int{}, map[string][]string{}
	maps.Copy(o.AICalls, m.calls)
	for model, texts := range m.saw {
		o.AISaw[model] = append([]string{}, texts...)
	}
}

// Close stops the server.
func (m *Models) Close() error { return m.server.Close() } //nolint:wrapcheck // nothing to add
