package docs_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/accounts"
	"github.com/oneturn/oneturn/subjects"
)

// secured is a server with the accounts and users of docs/operations.md, and more services.
type secured struct {
	t   *testing.T
	url *url.URL
	dir string
}

// newSecured starts the server; change may take a right away from the configuration.
func newSecured(t *testing.T, change ...func(config string) string) *secured {
	t.Helper()
	return securedFor(t, accounts.Options{}, change...)
}

// securedFor is newSecured for other tenants, pools and services.
func securedFor(t *testing.T, o accounts.Options, change ...func(config string) string) *secured {
	t.Helper()
	var err error
	o.Space, err = subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	if o.Tenants == nil {
		o.Tenants = []string{"acme"}
	}
	all, err := accounts.New(o)
	require.NoError(t, err)
	text := withPasswords(all)
	for _, f := range change {
		text = f(text)
	}
	s := &secured{t: t, dir: t.TempDir()}
	file := filepath.Join(s.dir, "nats.conf")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	opts, err := server.ProcessConfigFile(file)
	require.NoError(t, err)
	opts.Host, opts.Port, opts.StoreDir, opts.NoSigs, opts.NoLog = "127.0.0.1", server.RANDOM_PORT, t.TempDir(), true, true
	opts.JetStream = true
	srv, err := server.NewServer(opts)
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	require.True(t, srv.ReadyForConnections(10*time.Second))
	s.url, err = url.Parse(srv.ClientURL())
	require.NoError(t, err)
	return s
}

// withPasswords is the configuration with a password for each user: its name.
func withPasswords(all []accounts.Account) string {
	text := accounts.Config(all)
	for _, a := range all {
		for _, u := range a.Users {
			text = strings.ReplaceAll(text, "$"+accounts.Password(u)+",", strconv.Quote(u.Name)+",")
		}
	}
	return text
}

// as is the address for a role, of tenant acme if it is one of a tenant.
func (s *secured) as(role string) string {
	u := *s.url
	name := role
	if slices.Contains([]string{"publisher", "answerer", "reader", "fetcher", "inspector"}, role) {
		name = "acme-" + role
	}
	u.User = url.UserPassword(name, name)
	return u.String()
}

// flags are the flags of a command that signs in as a role.
func (s *secured) flags(role string, more ...string) []string {
	return append(more, "--nats", s.as(role), "--inbox-prefix", "_INBOX_"+role)
}

// run runs turnctl to its end, which has to be a success without a denial.
func (s *secured) run(role string, args ...string) string {
	s.t.Helper()
	out, code := output(s.t, command(s.t, s.dir, "turnctl", s.flags(role, args...)...))
	require.NotContains(s.t, strings.ToLower(out), "permission", "%v as %s", args, role)
	require.Zero(s.t, code, out)
	return out
}

// denials collects what the server denies a connection.
type denials struct {
	mu   sync.Mutex
	errs []error
}

func (d *denials) list() []error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]error{}, d.errs...)
}

func (s *secured) connect(role string) (*nats.Conn, *denials) {
	s.t.Helper()
	d := &denials{}
	nc, err := nats.Connect(s.as(role), nats.CustomInboxPrefix("_INBOX_"+role), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.errs = append(d.errs, err)
	}))
	require.NoError(s.t, err)
	s.t.Cleanup(nc.Close)
	return nc, d
}

const securedManifest = `
agents: {Filer: {model: Note}, Printer: {model: Note2}, Asker: {model: Note3}}
models:
  Note: {type: object, required: [text], properties: {text: {type: string}, seconds: {type: number, default: 0}}}
  Note2: {type: object, required: [text], properties: {text: {type: string}}}
  Note3: {type: object, required: [text], properties: {text: {type: string}, seconds: {type: number, default: 60}}}
tools:
  - {name: file_note, agent: Filer, file: tools.py, effect: idempotent, limits: {rate: 1000/s, tenant: {rate: 1000/s}}}
  - {name: print_note, agent: Printer, file: tools.py, effect: idempotent}
  - {name: ask_note, agent: Asker, file: tools.py, effect: replay}
`

const securedTools = `
import time

from core.workflow.outputs.ui_tools import use_ui_tool

async def ask_note(text, seconds, chat_id=None, workflow_name=None):
    answer = await use_ui_tool("Card", {"text": text, "password": text == "password?"}, chat_id=chat_id, workflow_name=workflow_name, timeout=seconds)
    return answer["reply"]

def file_note(text, seconds, context_variables):
    time.sleep(seconds)
    context_variables.set("last", text)
    return text

def print_note(text, context_variables):
    return (context_variables.get("last") or "nothing") * 100_000
`

func note(chat, turn, agent, model string, data map[string]any) *oneturn.Turn {
	return &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "acme", Chat: chat, Turn: turn}, Workflow: "Notes", Agent: agent, Model: model, Data: data,
	}
}

func do(t *testing.T, c *oneturn.Client, turn *oneturn.Turn) *oneturn.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := c.Do(ctx, turn)
	require.NoError(t, err)
	return r
}
