package httptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/conformance"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

func TestHTTPToolKeepsThePromisesOfAllTools(t *testing.T) {
	t.Parallel()
	s := server(t, function)
	conformance.Run(t, conformance.Kind{
		Name:      "http",
		MaxOutput: maxAnswer,
		Invoker: func(function string) tools.Invoker {
			to := at(s)
			to.URL += "/" + function
			return tool(t, s, to)
		},
		Cannot: map[string]string{"ask": "an endpoint has no way to ask during a request"},
	})
}

// function serves a function of the suite.
func function(w http.ResponseWriter, r *http.Request) {
	args, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	host := conformance.Host{Identity: identity(r.Header), Crash: func() { panic(http.ErrAbortHandler) }}
	if name == "progress" {
		host.Progress = report(w)
	}
	value, err := conformance.Function(r.Context(), name, args, host)
	var failed *events.Error
	switch {
	case name == "progress" && err == nil:
		_, _ = fmt.Fprintf(w, "event: result\ndata: %s\n\n", value)
	case name == "text":
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "done")
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(value)
	case tools.IsRetryable(err):
		wait, _ := tools.RetryDelay(err)
		w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())))
		http.Error(w, "busy", http.StatusServiceUnavailable)
	case errors.As(err, &failed):
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(map[events.Code]int{
			events.CodeUserError: http.StatusConflict, events.CodeBadArgs: http.StatusBadRequest, events.CodeToolError: http.StatusInternalServerError,
		}[failed.Code])
		if err := json.NewEncoder(w).Encode(map[string]string{"title": string(failed.Code), "detail": failed.Msg}); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// report sends progress as server-sent events.
func report(w http.ResponseWriter) func(ctx context.Context, percent float64, message string) error {
	w.Header().Set("Content-Type", "text/event-stream")
	return func(_ context.Context, percent float64, message string) error {
		_, err := fmt.Fprintf(w, ": how far it is\nevent: progress\ndata: {\"percent\":%g,\ndata: \"message\":%q}\n\n", percent, message)
		if err == nil {
			err = http.NewResponseController(w).Flush()
		}
		return err
	}
}

func identity(h http.Header) conformance.Identity {
	number := func(name string) int { n, _ := strconv.Atoi(h.Get(name)); return n }
	token, _ := strconv.ParseUint(h.Get(target.HTTPFencingToken), 10, 64)
	return conformance.Identity{
		IdempotencyKey: strings.ReplaceAll(h.Get(target.HTTPIdempotencyKey), "%20", " "), FencingToken: token,
		Epoch: number(target.HeaderEpoch), Attempt: number(target.HeaderAttempt), Depth: number(target.HeaderDepth),
	}
}
