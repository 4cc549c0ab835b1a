package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// call is the request of a worker.
type call struct {
	nc *nats.Conn
	r  micro.Request
}

// failure is an error with a code of the protocol.
type failure struct{ code, message string }

func (f *failure) Error() string { return f.message }

// question is what a person is asked.
type question struct {
	Name    string          `json:"name"` // unique in the call, the same in every run
	Tool    string          `json:"tool"` // what shows it
	Payload any             `json:"payload"`
	Schema  json.RawMessage `json:"schema"` // of the answer
}

// handler makes an endpoint of a function. Each call has a goroutine: it may wait for days.
func handler[In any](nc *nats.Conn, do func(context.Context, *call, In) (any, error)) micro.Handler {
	return micro.HandlerFunc(func(r micro.Request) {
		go func() {
			c := &call{nc, r}
			ctx, cancel := c.context()
			defer cancel()
			var in In
			if err := json.Unmarshal(r.Data(), &in); err != nil {
				c.fail(&failure{"bad_args", err.Error()})
				return
			}
			out, err := do(ctx, c, in)
			if err == nil {
				err = r.RespondJSON(out)
			}
			if err != nil {
				c.fail(err)
			}
		}()
	})
}

// context ends when the call does: its turn was cancelled or parked, or its worker is gone.
func (c *call) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		for {
			const look = 30 * time.Second
			waiting, done := context.WithTimeout(ctx, look)
			err := c.toHost(waiting, "end", nil, nil)
			done()
			if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
				return
			}
		}
	}()
	return ctx, cancel
}

// key is the same for every run of the call.
func (c *call) key() string { return c.r.Headers().Get("Oneturn-Idempotency-Key") }

// ask asks a person. The answer may come in another run: after an error, return.
func (c *call) ask(ctx context.Context, q question, answer any) error {
	var reply struct {
		Value json.RawMessage `json:"value"`
	}
	if err := c.toHost(ctx, "ask", q, &reply); err != nil {
		return err
	}
	return decode(reply.Value, answer)
}

// toHost sends an operation to the reply subject of the request, and waits for the outcome.
func (c *call) toHost(ctx context.Context, kind string, body, reply any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	m := nats.NewMsg(c.r.Reply())
	m.Header.Set("Oneturn-Kind", kind)
	m.Data = data
	answer, err := c.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	if code := answer.Header.Get("Oneturn-Error-Code"); code != "" {
		return &failure{code, answer.Header.Get(micro.ErrorHeader)}
	}
	if reply == nil {
		return nil
	}
	return decode(answer.Data, reply)
}

func decode(data []byte, to any) error {
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

// fail answers with an error.
func (c *call) fail(err error) {
	code := "tool_error"
	var f *failure
	if errors.As(err, &f) {
		code = f.code
	}
	_ = c.r.Error("500", err.Error(), nil, micro.WithHeaders(micro.Headers{"Oneturn-Error-Code": {code}}))
}
