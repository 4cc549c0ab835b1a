package httptool_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/memhost"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/httptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

func TestEndpointGetsTheIdentityOfItsCall(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	s := server(t, func(_ http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		body, _ = io.ReadAll(r.Body)
	})
	to := at(s)
	to.URL += "/v1/orders?version=2"
	to.Headers = map[string]target.Value{
		"authorization": {File: secretFile(t, "CANARY\n"), Prefix: "Bearer "}, "accept": {Text: "application/vnd.shop+json"},
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := tool(t, s, to).Invoke(ctx, call(map[string]any{"text": "é"}))
	require.NoError(t, err)
	require.JSONEq(t, `{"text":"é"}`, string(body))
	require.Equal(t, "POST /v1/orders?version=2", got.Method+" "+got.RequestURI)
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/vnd.shop+json", "Authorization": "Bearer CANARY",
		"Idempotency-Key": "key-1", "X-Fencing-Token": "42", "Oneturn-Idempotency-Key": "key-1", "Oneturn-Fencing-Token": "42",
		"Oneturn-Epoch": "2", "Oneturn-Attempt": "3", "Oneturn-Call": "turn-1", "Oneturn-App": "app", "Oneturn-Chat": "chat-1",
		"Oneturn-User": "ada", "Oneturn-Workflow": "Shop", "Oneturn-Agent": "Clerk",
		"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	} {
		require.Equal(t, []string{want}, got.Header[name], name)
	}
	require.Regexp(t, `^5\d{4}$|^60000$`, got.Header.Get("Oneturn-Timeout"))
}

func TestAnswerBecomesJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, body, want string }{
		{"application/json", `{"a":1.50}`, `{"a":1.50}`},
		{"application/json; charset=utf-8", `[1]`, `[1]`},
		{"application/vnd.shop+json", `"x"`, `"x"`},
		{"", `7`, `7`},
		{"", ` {"a":1} `, `{"a":1}`},
		{"", `Grüße`, `"Grüße"`},
		{"Application/JSON", `{"a":1}`, `{"a":1}`},
		{"application/json, application/json", `{"a":1}`, `{"a":1}`},
		{"application/json charset=utf-8", `{"a":1}`, `{"a":1}`},
		{"application/json; charset", "\ufeff{\"a\":1}\r\n", `{"a":1}`},
		{"text/json", `{"a":1}`, `{"a":1}`},
		{"text/html; charset=UTF-8", `{"a":1}`, `{"a":1}`},
		{"binary/octet-stream", `[1]`, `[1]`},
		{"application/json", " \r\n", ``},
		{"text/plain", `{"a":1}`, `"{\"a\":1}"`},
		{"text/html", `<p>x</p>`, `"\u003cp\u003ex\u003c/p\u003e"`},
		{"application/json", ``, ``},
		{"text/plain; charset=utf-8", `Grüße "x"`, `"Grüße \"x\""`},
		{"text/csv", "a,b\n", `"a,b\n"`},
	} {
		s := answering(t, http.StatusCreated, c.body, "Content-Type", c.kind)
		result, err := tool(t, s, at(s)).Invoke(t.Context(), call(nil))
		require.NoError(t, err, c.kind)
		require.Equal(t, c.want, string(result.Value), c.kind)
	}
	s := answering(t, http.StatusNoContent, "")
	result, err := tool(t, s, at(s)).Invoke(t.Context(), call(nil))
	require.NoError(t, err)
	require.Empty(t, result.Value)
}

func TestAnswerThatCannotBeUsedIsAnErrorOfTheTool(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, body, want string }{
		{"application/json", `{"CANARY":1`, "(11 bytes) cannot be used: invalid JSON at byte 11"},
		{"application/json", `{"a":1,"a":2}`, "invalid JSON at byte"},
		{"application/json", `{} {}`, "invalid JSON at byte"},
		{"application/json", `{"a": NaN, "b": 1}`, "it has NaN where a value is expected"},
		{"application/json", `<html>CANARY</html>`, "it is a page or XML"},
		{"application/json", "\xff\xfe{\x00}\x00", "it is UTF-16: send UTF-8"},
		{"application/json; charset=iso-8859-1", "{\"a\":\"\xe9\"}", "it is not UTF-8"},
		{"application/json", "gzipped\x00", "invalid JSON"},
		{"", `{CANARY`, "invalid JSON"},
		{"application/octet-stream", `CANARY`, `Content-Type is "application/octet-stream"`},
		{"image/png", `{}`, `Content-Type is "image/png"`},
		{"text/html; charset=utf-16", "x", "send UTF-8"},
		{"text/plain; charset=latin1", "x", "send UTF-8"},
		{"text/plain", "\xff", "is not UTF-8"},
	} {
		s := answering(t, http.StatusOK, c.body, "Content-Type", c.kind)
		_, err := tool(t, s, at(s)).Invoke(t.Context(), call(nil))
		require.ErrorIs(t, err, events.ErrToolError, c.kind)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "CANARY")
		require.False(t, tools.IsRetryable(err))
	}
}

func TestStatusesAreErrorsOfTheirKind(t *testing.T) {
	t.Parallel()
	const problem = "application/problem+json"
	for _, c := range []struct {
		status     int
		kind, body string
		code       events.Code
		want       string
	}{
		{400, problem, `{"title":"Bad","detail":"pieces is missing"}`, events.CodeBadArgs, "pieces is missing"},
		{400, "", ``, events.CodeBadArgs, "status 400 (Bad Request)"},
		{422, "application/json", `{"detail":[{"loc":["body"],"msg":"too many"},{"msg":"too late"}]}`, events.CodeUserError, "too many; too late"},
		{409, "text/plain", "sold\tout\x00\n", events.CodeUserError, "sold out"},
		{401, "", ``, events.CodeToolError, "credentials are not accepted"},
		{403, "application/json", `{"error":{"message":"not yours"}}`, events.CodeToolError, "not yours"},
		{404, "text/html", `<h1>CANARY</h1>`, events.CodeToolError, "check the url"},
		{405, "", ``, events.CodeToolError, "check the method"},
		{415, "", ``, events.CodeToolError, "does not take or give JSON"},
		{413, "", ``, events.CodeTooLarge, "too large"},
		{408, "", ``, events.CodeTimeout, "may or may not have happened"},
		{504, "", ``, events.CodeTimeout, "may or may not have happened"},
		{502, "", ``, events.CodeToolError, "may or may not have happened"},
		{500, "application/json", `{"message":"it broke"}`, events.CodeToolError, "status 500 (Internal Server Error): it broke"},
		{503, "", ``, events.CodeToolError, "status 503"},
		{304, "", ``, events.CodeToolError, "status 304 (Not Modified): it redirects"},
		{206, "application/json", `{"CANARY":1}`, events.CodeToolError, "status 206"},
		{502, "text/html", `{"message":"no worker"}`, events.CodeToolError, "no worker"},
		{500, "", "\ufeff{\"error\":\"it broke\"}", events.CodeToolError, "it broke"},
		{500, "text/plain", `{"error":{"message":"it broke"}}`, events.CodeToolError, ": it broke"},
		{599, "", ``, events.CodeToolError, "status 599"},
		{500, "application/json", `{"message":{"a":`, events.CodeToolError, "status 500"},
	} {
		s := answering(t, c.status, c.body, "Content-Type", c.kind)
		_, err := tool(t, s, at(s)).Invoke(t.Context(), call(nil))
		require.Equal(t, c.code, events.CodeOf(err), "%d: %v", c.status, err)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "CANARY")
		require.NotContains(t, err.Error(), "\x00")
		require.False(t, tools.IsRetryable(err), c.status)
	}
}

func TestOnlyARefusalOfTheEndpointIsRetryable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status    int
		headers   []string
		retryable bool
		from, to  time.Duration
	}{
		{429, nil, true, 0, 0},
		{429, []string{"Retry-After", "7"}, true, 7 * time.Second, 7 * time.Second},
		{503, []string{"Retry-After", "0"}, true, 0, 0},
		{503, []string{"Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}, true, 50 * time.Minute, time.Hour},
		{503, []string{"Retry-After", "Thu, 01 Jan 1970 00:00:00 GMT"}, true, 0, 0},
		{503, []string{"Retry-After", "99999999"}, true, 24 * time.Hour, 24 * time.Hour},
		{503, []string{"Retry-After", " 1.5 "}, true, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{503, []string{"Retry-After", "1e400"}, false, 0, 0},
		{503, []string{"Retry-After", "soon"}, false, 0, 0},
		{503, []string{"Retry-After", "-1"}, false, 0, 0},
		{500, []string{"Retry-After", "1"}, false, 0, 0},
		{500, []string{"Oneturn-Error-Code", "retryable", "Retry-After", "2"}, true, 2 * time.Second, 2 * time.Second},
		{429, []string{"Oneturn-Error-Code", "tool_error"}, false, 0, 0},
	} {
		s := answering(t, c.status, "", c.headers...)
		_, err := tool(t, s, at(s)).Invoke(t.Context(), call(nil))
		wait, retryable := tools.RetryDelay(err)
		require.Equal(t, c.retryable, retryable, "%d %v", c.status, c.headers)
		require.GreaterOrEqual(t, wait, c.from)
		require.LessOrEqual(t, wait, c.to)
	}
}

func TestErrorCodeOfTheEndpointWinsOverItsStatus(t *testing.T) {
	t.Parallel()
	for word, code := range map[string]events.Code{
		"user_error": events.CodeUserError, "bad_args": events.CodeBadArgs, "timeout": events.CodeTimeout,
		"guardrail": events.CodeToolError, "nonsense": events.CodeToolError,
	} {
		s := answering(t, http.StatusOK, "no such city", "Content-Type", "text/plain", "Oneturn-Error-Code", word)
		_, err := tool(t, s, at(s)).Invoke(t.Context(), call(nil))
		require.Equal(t, code, events.CodeOf(err), word)
		require.ErrorContains(t, err, "no such city")
	}
}

func TestSecretThatTheEndpointShowsIsRedacted(t *testing.T) {
	t.Parallel()
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/fail" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = fmt.Fprintf(w, `{"message":"wrong key: %s"}`, r.Header.Get("Authorization"))
	})
	to := at(s)
	to.Headers = map[string]target.Value{"Authorization": {File: secretFile(t, "CANARY"), Prefix: "Bearer "}}
	result, err := tool(t, s, to).Invoke(t.Context(), call(nil))
	require.NoError(t, err)
	require.JSONEq(t, `{"message":"wrong key: [secret]"}`, string(result.Value))
	to.URL += "/fail"
	_, err = tool(t, s, to).Invoke(t.Context(), call(nil))
	require.ErrorContains(t, err, "wrong key: [secret]")
}

func TestSecretIsRedactedHoweverItIsEscapedAndLeavesJSON(t *testing.T) {
	t.Parallel()
	s := answering(t, http.StatusOK, `{"reply":"CAN\u0041RY \"x\"","true":true}`, "Content-Type", "application/json")
	for text, want := range map[string]string{
		`CANARY "x"`: `{"reply":"[secret]","true":true}`,
		`true`:       `{"reply":"CANARY \"x\"","[secret]":true}`,
	} {
		to := at(s)
		to.Headers = map[string]target.Value{"X-Key": {File: secretFile(t, text)}}
		result, err := tool(t, s, to).Invoke(t.Context(), call(nil))
		require.NoError(t, err)
		require.JSONEq(t, want, string(result.Value))
	}
}

func TestTextOfAFailureIsBounded(t *testing.T) {
	t.Parallel()
	s := answering(t, http.StatusInternalServerError, strings.Repeat("é", 50_000), "Content-Type", "text/plain")
	_, err := tool(t, s, at(s)).Invoke(t.Context(), call(nil))
	require.Error(t, err)
	require.Less(t, len(err.Error()), 3000)
}

func TestStreamThatIsNoneFailsTheCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body string
		code events.Code
		want string
	}{
		{"event: progress\ndata: {}\n\n", events.CodeToolError, "may or may not have happened"},
		{"event: result\ndata: {}\n", events.CodeToolError, "may or may not have happened"},
		{"event: result\ndata: {\n\n", events.CodeToolError, "invalid JSON"},
		{"event: error\ndata: {\"code\":\"user_error\",\"message\":\"no such city\"}\n\n", events.CodeUserError, "no such city"},
		{"event: error\ndata: nonsense\n\n", events.CodeToolError, "without a message"},
		{"data: " + strings.Repeat("x", maxAnswer+1), events.CodeTooLarge, "too large"},
	} {
		s := answering(t, http.StatusOK, c.body, "Content-Type", "text/event-stream")
		_, err := tool(t, s, at(s)).Invoke(t.Context(), call(nil))
		require.Equal(t, c.code, events.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, c.want)
		require.False(t, tools.IsRetryable(err))
	}
}

func TestStreamMayRefuseTheCall(t *testing.T) {
	t.Parallel()
	s := answering(t, http.StatusOK, "event: error\ndata: {\"code\":\"retryable\",\"message\":\"busy\"}\n\n", "Content-Type", "text/event-stream")
	_, err := tool(t, s, at(s)).Invoke(t.Context(), call(nil))
	require.True(t, tools.IsRetryable(err))
}

func TestProgressThatCannotBeReadIsPassedOver(t *testing.T) {
	t.Parallel()
	s := answering(t, http.StatusOK, "retry: 5\n\nevent: progress\ndata: nonsense\n\nevent: progress\r\ndata:{\"percent\":900,\"message\":\"a\\u0007b\"}\r\n\r\n"+
		"event: progress\ndata: {}\n\nevent: other\ndata: 1\n\nevent: result\n\n", "Content-Type", "text/event-stream")
	host := &memhost.Host{}
	c := call(nil)
	c.Host = host
	result, err := tool(t, s, at(s)).Invoke(t.Context(), c)
	require.NoError(t, err)
	require.Empty(t, result.Value)
	require.Equal(t, []tools.Progress{{Percent: 100, Message: "a b"}, {Percent: -1}}, host.Reported())
}

func TestMethodWithoutBodyIsRefused(t *testing.T) {
	t.Parallel()
	_, err := httptool.New(&target.HTTP{URL: "https://example.com", Method: "GET"}, httptool.Options{}).Invoke(t.Context(), call(nil))
	require.ErrorContains(t, err, "use POST, PUT or PATCH")
}

func TestURLWithAKeyIsNotShownWhenItCannotBeRead(t *testing.T) {
	t.Parallel()
	_, err := httptool.New(&target.HTTP{URL: "https://example.com/%zz?key=CANARY"}, httptool.Options{}).Invoke(t.Context(), call(nil))
	require.ErrorContains(t, err, "cannot be read")
	require.NotContains(t, err.Error(), "CANARY")
}
