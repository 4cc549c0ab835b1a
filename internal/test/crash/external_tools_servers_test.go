//go:build failpoints

package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// serveNATS is a service process.
func (c *counterpart) serveNATS(ctx context.Context, url string) error {
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		return err
	}
	defer nc.Close()
	service, err := micro.AddService(nc, micro.Config{Name: "crash", Version: "1.0.0"})
	if err != nil {
		return err
	}
	err = service.AddEndpoint("work", micro.HandlerFunc(func(r micro.Request) {
		go func() {
			if err := c.answerNATS(ctx, nc, r); err != nil {
				m := micro.Headers{target.HeaderErrorCode: {string(events.CodeOf(err))}}
				_ = r.Error("500", err.Error(), nil, micro.WithHeaders(m))
				return
			}
			_ = r.Respond([]byte(result))
		}()
	}), micro.WithEndpointSubject("crash.work"))
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (c *counterpart) answerNATS(ctx context.Context, nc *nats.Conn, r micro.Request) error {
	h := r.Headers()
	j, call, err := parse(r.Data(), h.Get(target.HeaderIdempotencyKey), h.Get(target.HeaderFencingToken), h.Get(target.HeaderEpoch))
	if err != nil {
		return err
	}
	return c.work(ctx, j, call, func(ctx context.Context, name string) error {
		m := nats.NewMsg(r.Reply())
		m.Header.Set(target.HeaderKind, "ask")
		m.Data = fmt.Appendf(nil, `{"tool":"Confirm","name":%q,"payload":{"at":%q}}`, name, time.Now())
		ctx, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		answer, err := nc.RequestMsgWithContext(ctx, m)
		if err != nil {
			return err // its worker has died
		}
		if code := answer.Header.Get(target.HeaderErrorCode); code != "" {
			return &events.Error{Code: events.Code(code), Op: "ask"}
		}
		return nil
	})
}

// serveHTTP is a server with an endpoint for JSON and one for chat completions.
func (c *counterpart) serveHTTP(ctx context.Context, address string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /work", func(w http.ResponseWriter, r *http.Request) {
		args, err := io.ReadAll(r.Body)
		if err == nil {
			err = c.answerHTTP(r, args)
		}
		reply(w, err, json.RawMessage(result))
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Messages []struct {
				Content string `json:"content"`
			} `json:"messages"`
		}
		err := json.NewDecoder(r.Body).Decode(&asked)
		if err == nil && len(asked.Messages) == 0 {
			err = errors.New("no messages")
		}
		if err == nil {
			err = c.answerHTTP(r, []byte(asked.Messages[len(asked.Messages)-1].Content))
		}
		reply(w, err, map[string]any{"choices": []any{map[string]any{
			"finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": result},
		}}})
	})
	return c.listen(ctx, address, mux)
}

func (c *counterpart) answerHTTP(r *http.Request, args []byte) error {
	j, call, err := parse(args, r.Header.Get(target.HeaderIdempotencyKey), r.Header.Get(target.HeaderFencingToken), r.Header.Get(target.HeaderEpoch))
	if err != nil {
		return err
	}
	return c.work(r.Context(), j, call, nil)
}

func reply(w http.ResponseWriter, err error, value any) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) //nolint:errchkjson // the worker has gone
}
