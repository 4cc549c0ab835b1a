package main

import (
	"cmp"
	"net/url"
	"path/filepath"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// whereReport is the location of the code of a tool. Text is for people; the other fields depend on the kind.
type whereReport struct {
	Text     string `json:"text"`
	File     string `json:"file,omitempty"` // python: relative to the folder
	Function string `json:"function,omitempty"`
	Subject  string `json:"subject,omitempty"` // nats, agent
	Service  string `json:"service,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	Server   string `json:"server,omitempty"` // mcp: its name in the manifest
	Command  string `json:"command,omitempty"`
	Tool     string `json:"tool,omitempty"` // mcp: its name on the server
	Digest   string `json:"digest,omitempty"`
	Method   string `json:"method,omitempty"`
	URL      string `json:"url,omitempty"` // without its query, which may hold a secret
	Model    string `json:"model,omitempty"`
}

func whereIs(b *bindings.Binding) whereReport {
	switch t := b.Target.(type) {
	case *target.NATS:
		return whereService(t)
	case *target.MCP:
		return whereServer(t)
	case *target.HTTP:
		w := whereReport{Method: cmp.Or(t.Method, "POST"), URL: withoutQuery(t.URL)}
		w.Text = clean(w.Method+" "+w.URL, longestWhere)
		return w
	case *target.Agent:
		switch {
		case t.NATS != nil:
			return whereService(t.NATS)
		case t.Completions != nil:
			w := whereReport{Model: t.Completions.Model, URL: withoutQuery(t.Completions.URL)}
			w.Text = "model " + id(w.Model) + " at " + clean(w.URL, longestWhere)
			return w
		}
	}
	switch b.Kind {
	case bindings.KindPlan:
		return whereReport{Text: "runs plans"}
	case bindings.KindOrchestrate:
		return whereReport{Text: "runs orchestrations"}
	case bindings.KindPython:
		return whereReport{File: b.File, Function: b.Function, Text: clean(b.File, longestWhere) + ":" + id(b.Function)}
	default:
	}
	return whereReport{Text: string(b.Kind) + " tool of the worker's program"}
}

// longestWhere bounds a place in a line, in characters.
const longestWhere = 200

func whereService(t *target.NATS) whereReport {
	w := whereReport{Subject: t.Subject, Service: t.Service, Endpoint: t.Endpoint}
	switch {
	case t.Service == "":
		w.Text = "subject " + clean(t.Subject, longestWhere)
	case t.Endpoint == "":
		w.Text = "service " + id(t.Service)
	default:
		w.Text = "endpoint " + id(t.Endpoint) + " of service " + id(t.Service)
	}
	return w
}

func whereServer(t *target.MCP) whereReport {
	w := whereReport{Tool: t.Tool, Digest: t.Digest}
	if t.Server == nil {
		w.Text = id(t.Tool)
		return w
	}
	w.Server, w.URL = t.Server.Name, withoutQuery(t.Server.URL)
	how := w.URL
	if len(t.Server.Command) > 0 {
		w.Command = filepath.Base(t.Server.Command[0])
		how = "command " + w.Command
	}
	w.Text = id(t.Tool) + " of server " + id(w.Server) + " (" + clean(how, longestWhere) + ")"
	return w
}

// withoutQuery is a URL without what may be a secret in it.
func withoutQuery(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
