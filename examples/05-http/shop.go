package main

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
)

// shop takes orders. It keeps them in memory; one that matters would keep them in a database,
// each under its idempotency key.
type shop struct {
	token string // file

	mu      sync.Mutex
	answers map[string]receipt // by idempotency key
}

type order struct {
	Item  string `json:"item"`
	Count int    `json:"count"`
}

// receipt is a result. Its message is what people read.
type receipt struct {
	Order   int    `json:"order"`
	Message string `json:"message"`
}

func newShop(token string) http.Handler {
	s := &shop{token: token, answers: map[string]receipt{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/orders", s.known(s.order))
	mux.HandleFunc("POST /v1/reports", s.known(s.report))
	return mux
}

// known admits only callers with the token.
func (s *shop) known(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, err := os.ReadFile(s.token) // each time: it may have been replaced
		want := "Bearer " + strings.TrimSpace(string(token))
		if err != nil || subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(want)) == 0 {
			problem(w, http.StatusUnauthorized, "the token is another one")
			return
		}
		next(w, r)
	}
}

// order takes an order, once for each idempotency key.
func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	var o order
	const most = 1 << 16 // bytes
	switch err := json.NewDecoder(http.MaxBytesReader(w, r.Body, most)).Decode(&o); {
	case err != nil || key == "":
		problem(w, http.StatusBadRequest, "send an order as JSON, with an Idempotency-Key")
		return
	case o.Item == "gold":
		problem(w, http.StatusConflict, "We do not sell gold.")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, again := s.answers[key]
	if !again {
		answer = receipt{len(s.answers) + 1, fmt.Sprintf("Ordered %d of %s.", o.Count, o.Item)}
		s.answers[key] = answer
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) //nolint:errchkjson // the caller is gone
}

// report sends progress as server-sent events, and then the result.
func (s *shop) report(w http.ResponseWriter, r *http.Request) {
	var o order
	const most = 1 << 16 // bytes
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, most)).Decode(&o); err != nil {
		problem(w, http.StatusBadRequest, "send an item as JSON")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for percent := 25; percent < 100; percent += 25 {
		fmt.Fprintf(w, "event: progress\ndata: {\"percent\": %d, \"message\": \"counting\"}\n\n", percent)
		_ = http.NewResponseController(w).Flush()
	}
	result, _ := json.Marshal(map[string]any{"item": o.Item, "left": 120, "message": fmt.Sprintf("120 of %s are left.", o.Item)}) //nolint:errchkjson // texts and numbers
	fmt.Fprintf(w, "event: result\ndata: %s\n\n", result)
}

// problem is a failure by RFC 9457. People and models get its detail.
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": detail}) //nolint:errchkjson // the caller is gone
}
