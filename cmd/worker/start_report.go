package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/cmd/internal/probes"
	"github.com/oneturn/oneturn/cmd/internal/traces"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/provision"
)

// The report has what a person or a script needs next: where to publish, how durable the store is, what is bound
// to which tool and the first errors of the manifests. Secrets are not in it: addresses come without passwords.

// start is the output of a worker when it begins to consume; its fields are the JSON of -o json.
type start struct {
	Name      string            `json:"name"`
	NATS      string            `json:"nats"`            // URL for publishers
	Store     string            `json:"store,omitempty"` // directory of the embedded server
	Pool      string            `json:"pool"`
	Publish   string            `json:"publish"` // subject of turns
	Tier      provision.Tier    `json:"tier"`
	HTTP      string            `json:"http,omitempty"`   // base URL of health checks and metrics
	Traces    string            `json:"traces,omitempty"` // URL to which spans of calls are exported
	Folder    string            `json:"folder"`
	Workflows []startedWorkflow `json:"workflows"`
	Errors    int               `json:"errors"`
	Warnings  int               `json:"warnings"`
	Problems  []string          `json:"faults,omitempty"` // the first causes of errors in the manifests

	signIn   string // credential flags of a publisher, after its URL
	accounts string // file with the accounts of the embedded server, "" for none
	open     bool   // the embedded server has no password
}

type startedWorkflow struct {
	Name     string   `json:"name"`
	Bindings []string `json:"bindings"`        // agent/model → tool
	Empty    string   `json:"empty,omitempty"` // why it binds nothing
}

// maxProblems is how many causes of errors are printed.
const maxProblems = 10

func newStart(cfg *config.Worker, w *oneturn.Worker, l *natsLink, web *probes.Server, spans *traces.Exporter) *start {
	set := w.Bindings()
	s := &start{
		Name: w.Name(), NATS: l.url, Pool: cfg.Pool, Tier: l.tier, HTTP: web.URL(), Traces: spans.URL(), Folder: cfg.Workflows,
		Publish: strings.TrimSuffix(l.space.In(cfg.Pool, events.KindStructuredOutputReady, "a", "w", "c"), "a.w.c") + "<app>.<workflow>.<chat>",

		Workflows: []startedWorkflow{},
	}
	if l.server != nil {
		s.Store = cfg.Store
		s.open = cfg.ListenPassword == "" && cfg.Accounts == ""
	}
	s.signIn, s.accounts = signInOf(cfg), cfg.Accounts
	for _, name := range set.Workflows() {
		s.Workflows = append(s.Workflows, startedWorkflow{name, boundIn(set, name), set.Empty(name)})
	}
	for _, c := range bindings.Causes(set.Diagnostics()) {
		switch c.Severity {
		case diag.SeverityError:
			if s.Errors += 1 + len(c.More); len(s.Problems) < maxProblems {
				s.Problems = append(s.Problems, c.String())
			}
		case diag.SeverityWarning:
			s.Warnings += 1 + len(c.More)
		case diag.SeverityInfo:
		}
	}
	return s
}

// signInOf returns the credential flags of a publisher; "" if none are needed.
func signInOf(cfg *config.Worker) string {
	const more = ", with its password in ONETURN_NATS_PASSWORD"
	switch user := cmp.Or(cfg.ListenUser, cfg.User); {
	case cfg.Accounts != "":
		return " --nats-user TENANT-publisher --inbox-prefix _INBOX_publisher" + more
	case user != "":
		return " --nats-user " + user + more
	}
	return ""
}

func boundIn(set *bindings.Set, workflow string) []string {
	bound := []string{}
	for _, b := range set.Bindings() {
		if b.Workflow == workflow {
			source := b.Agent
			if b.ModelName != "" {
				source += "/" + b.ModelName
			}
			bound = append(bound, source+" → "+b.Tool)
		}
	}
	return bound
}

// write writes the start as one JSON object or for people.
func (s *start) write(format string, w io.Writer) error {
	if format == "json" {
		return cli.WriteJSON(w, s, "")
	}
	var b strings.Builder
	s.text(&b)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

func (s *start) text(b *strings.Builder) {
	line := func(title, format string, args ...any) {
		const indent = 13
		fmt.Fprintf(b, "  %-11s%s\n", title, cli.Hang(fmt.Sprintf(format, args...), indent))
	}
	fmt.Fprintf(b, "oneturn worker %s is ready\n", s.Name)
	line("workflows", "%s", s.Folder)
	for _, wf := range s.Workflows {
		line("", "%s: %s", wf.Name, orNothing(wf.Bindings, wf.Empty))
	}
	if len(s.Workflows) == 0 {
		line("", "none: every turn ends as no_binding")
	}
	for _, problem := range s.Problems {
		line("", "%s", problem)
	}
	if s.Errors+s.Warnings > 0 {
		line("", "%s, %s: run turnctl check %s for all", plural.Of(s.Errors, "error"), plural.Of(s.Warnings, "warning"), s.Folder)
	}
	if s.Store == "" {
		line("nats", "%s", s.NATS)
	} else {
		line("nats", "%s, embedded, store %s", s.NATS, s.Store)
	}
	if s.accounts != "" {
		line("", "accounts and users of %s", s.accounts)
	}
	if s.open {
		line("", "no password: any process here, including tools, may publish, read, change and delete;")
		line("", "set --listen-user and ONETURN_LISTEN_PASSWORD, or --accounts, to keep others out")
	}
	line("durability", "%s: %s", s.Tier.Name, s.Tier.Text)
	if s.HTTP != "" {
		line("http", "%s/healthz, /readyz, /metrics", s.HTTP)
	}
	if s.Traces != "" {
		line("traces", "spans of tool calls go to %s", s.Traces)
	}
	line("publish", "%s", s.Publish)
	line("", "publisher publish FILE --wait --nats %s%s", s.NATS, s.signIn)
}

func orNothing(list []string, why string) string {
	switch {
	case len(list) == 0 && why != "":
		return "no tool is bound: " + why
	case len(list) == 0:
		return "no tool is bound"
	}
	return strings.Join(list, ", ")
}
