package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

type greeting struct {
	Name string `json:"name"`
}

type greeted struct {
	Message string `json:"message"`
}

// workerServer is a server with a worker on it, whose tool waits for "slow" until the test ends.
type workerServer struct {
	*oneturntest.Server

	client  *oneturn.Client
	entered chan string
	release chan struct{}
}

func newServer(t *testing.T) *oneturntest.Server {
	t.Helper()
	s := oneturntest.NewServer(t)
	s.Provision()
	return s
}

func newWorkerServer(t *testing.T) *workerServer {
	t.Helper()
	d := &workerServer{Server: newServer(t), entered: make(chan string, 16), release: make(chan struct{})}
	greet := func(ctx context.Context, in greeting) (greeted, error) {
		d.entered <- in.Name
		switch in.Name {
		case "slow":
			select {
			case <-d.release:
			case <-ctx.Done():
			}
		case "":
			return greeted{}, errors.New("name is empty")
		}
		return greeted{"Hello, " + in.Name + "!"}, nil
	}
	w, err := oneturn.NewWorker(d.Connect(), oneturn.Config{
		Name:  "worker-1",
		Tools: []oneturn.Tool{oneturn.NewTool("greet", greet, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting", Effect: oneturn.Idempotent})},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		close(d.release)
		cancel()
		require.NoError(t, <-done)
	})
	d.client, err = oneturn.NewClient(d.Connect(), oneturn.ClientOptions{WithoutMsgID: true})
	require.NoError(t, err)
	return d
}

// publish sends a turn; the response is waited for unless the tool is the slow one.
func (d *workerServer) publish(t *testing.T, id oneturn.TurnID, name any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	turn := &oneturn.Turn{
		TurnID: id, Workflow: "Hello", Agent: "Greeter", Model: "Greeting", Data: map[string]any{"name": name},
	}
	_, err := d.client.Publish(ctx, turn)
	require.NoError(t, err)
	if name != "slow" {
		_, err = d.client.Await(ctx, id)
		require.NoError(t, err)
		return
	}
	for got := ""; got != "slow"; {
		select {
		case got = <-d.entered:
		case <-ctx.Done():
			require.Fail(t, "the slow tool was not entered")
		}
	}
}

// turnctl runs one command line against a server.
func turnctl(t *testing.T, s *oneturntest.Server, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := func(name string) (string, bool) {
		return s.URL(), name == "ONETURN_NATS"
	}
	code = execute(t.Context(), args, env, &out, &errs)
	return code, out.String(), errs.String()
}

// ok runs a command line that must succeed.
func ok(t *testing.T, s *oneturntest.Server, args ...string) string {
	t.Helper()
	code, stdout, stderr := turnctl(t, s, args...)
	require.Equal(t, cli.OK, code, "%s%s", stdout, stderr)
	require.Empty(t, stderr)
	return stdout
}

// decode runs a command line with -o json.
func decode[T any](t *testing.T, s *oneturntest.Server, args ...string) T {
	t.Helper()
	return decodeText[T](t, ok(t, s, append(args, "-o", "json")...))
}

// decodeText decodes what a command line has printed.
func decodeText[T any](t *testing.T, stdout string) T {
	t.Helper()
	var v T
	d := json.NewDecoder(bytes.NewBufferString(stdout))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&v))
	return v
}

// normal replaces what differs from run to run: times, durations, digests, versions, sequences.
func normal(text string) string {
	for _, r := range []struct{ pattern, with string }{
		{`\d{4}-\d\d-\d\dT[0-9:.]+Z`, "TIME"},
		{`\+?\d+\.\d ms`, "N ms"},
		{`tool \d+ ms`, "tool N ms"},
		{`[0-9a-f]{16}\b`, "DIGEST"},
		{`(?m)\b\d{3} bytes$`, "NNN bytes"},
		{`\d in work`, "N in work"},
		{`nats://127.0.0.1:\d+`, "URL"},
		{`server \d+\.\d+\.\d+,`, "server VERSION,"},
		{`[0-9.]+ [KM]iB|\d+ bytes stored`, "SIZE"},
		{` +`, " "},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.with)
	}
	return text
}

// record stores a record in the journal as no worker would.
func record(t *testing.T, s *oneturntest.Server, key string, header nats.Header, data string) {
	t.Helper()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	m := &nats.Msg{Subject: space.JournalSubject(key), Header: header, Data: []byte(data)}
	_, err = s.Connect().RequestMsg(m, 5*time.Second)
	require.NoError(t, err)
}

func turnID(chat, run, turn string) oneturn.TurnID {
	return oneturn.TurnID{App: events.DefaultApp, Chat: chat, Run: run, Turn: turn}
}
