package natstool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/conformance"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

const (
	envURL  = "NATSTOOL_URL"
	envName = "NATSTOOL_NAME" // of the service
)

// functions of the suite.
func functions() []string {
	return []string{"echo", "fail_user", "fail", "busy", "slow", "crash", "progress", "big", "identity", "ask", "null", "garbage", "text", "marked", "nan", "huge", "lowly", "later"}
}

// serveSuite is a process with a service that has the functions of the suite.
func serveSuite(ctx context.Context) error {
	nc, err := nats.Connect(os.Getenv(envURL), nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer nc.Close()
	service, err := micro.AddService(nc, micro.Config{Name: os.Getenv(envName), Version: "1.2.3", Description: "Functions of the suite."})
	if err != nil {
		return err
	}
	for _, name := range functions() {
		handler := micro.HandlerFunc(func(r micro.Request) { go answer(ctx, nc, name, r) })
		err := service.AddEndpoint(name, handler, micro.WithEndpointSubject(os.Getenv(envName)+"."+name),
			micro.WithEndpointMetadata(map[string]string{"oneturn-effect": "idempotent"}))
		if err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// answer does one request as a careful service does.
func answer(ctx context.Context, nc *nats.Conn, name string, r micro.Request) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if ms, err := strconv.Atoi(r.Headers().Get("Oneturn-Timeout")); err == nil {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		defer end()
	}
	go func() {
		if _, err := hostOperation(ctx, nc, r.Reply(), "end", ""); err != nil {
			cancel()
		}
	}()
	result, err := conformance.Function(ctx, name, r.Data(), host(nc, r))
	var coded *events.Error
	switch {
	case name == "text":
		_ = r.Respond([]byte("done"), micro.WithHeaders(micro.Headers{"Content-Type": {"text/plain"}}))
	case name == "lowly":
		_ = r.Respond(nil, micro.WithHeaders(micro.Headers{"oneturn-error-code": {"user_error"}, "nats-service-error": {"no such city"}}))
	case err == nil:
		_ = r.Respond(result)
	case errors.Is(err, context.DeadlineExceeded):
		_ = r.Error("504", "out of time", nil)
	case tools.IsRetryable(err):
		wait, _ := tools.RetryDelay(err)
		_ = r.Error("503", "busy", nil, micro.WithHeaders(micro.Headers{"Retry-After": {strconv.Itoa(int(wait.Seconds()))}}))
	case errors.As(err, &coded):
		_ = r.Error("500", coded.Msg, nil, micro.WithHeaders(micro.Headers{"Oneturn-Error-Code": {string(coded.Code)}}))
	default:
		_ = r.Error("500", err.Error(), nil)
	}
}

func host(nc *nats.Conn, r micro.Request) conformance.Host {
	number := func(name string) int { n, _ := strconv.Atoi(r.Headers().Get(name)); return n }
	token, _ := strconv.ParseUint(r.Headers().Get("Oneturn-Fencing-Token"), 10, 64)
	return conformance.Host{
		Identity: conformance.Identity{
			IdempotencyKey: strings.ReplaceAll(r.Headers().Get("Oneturn-Idempotency-Key"), "%20", " "),
			FencingToken:   token, Epoch: number("Oneturn-Epoch"), Attempt: number("Oneturn-Attempt"), Depth: number("Oneturn-Depth"),
		},
		Progress: func(_ context.Context, percent float64, message string) error {
			m := nats.NewMsg(r.Reply())
			m.Header.Set("Oneturn-Kind", "progress")
			m.Data = fmt.Appendf(nil, `{"percent":%v,"message":%q}`, percent, message)
			return nc.PublishMsg(m)
		},
		Ask: func(ctx context.Context, name string) (json.RawMessage, error) {
			var answer struct {
				Value json.RawMessage `json:"value"`
			}
			data, err := hostOperation(ctx, nc, r.Reply(), "ask", fmt.Sprintf(`{"tool":"Color","name":%q}`, name))
			if err != nil {
				return nil, err
			}
			return answer.Value, json.Unmarshal(data, &answer)
		},
		Crash: func() {
			os.Exit(3) //nolint:forbidigo // a separate process, which is to die
		},
	}
}

// hostOperation does an operation of the host of the call whose reply subject this is.
func hostOperation(ctx context.Context, nc *nats.Conn, reply, kind, body string) ([]byte, error) {
	m := nats.NewMsg(reply)
	m.Header.Set(target.HeaderKind, kind)
	m.Data = []byte(body)
	answer, err := nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return nil, err
	}
	if code := answer.Header.Get("Oneturn-Error-Code"); code != "" {
		return nil, &events.Error{Code: events.Code(code), Op: kind, Msg: answer.Header.Get("Nats-Service-Error")}
	}
	return answer.Data, nil
}
