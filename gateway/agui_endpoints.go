package gateway

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/catalog"
)

// The endpoints of AG-UI, for the client's HttpAgent, and the same under the paths and in the envelopes of CopilotKit's
// runtime. An endpoint decodes the input and checks who asks; agui_run.go has what happens in a run.

// aguiRoutes are the endpoints of AG-UI. The literal paths are before those with a workflow in their place.
func (g *Gateway) aguiRoutes() []route {
	return []route{
		{method: http.MethodGet, pattern: "/agui/info", endpoint: "agui_info", serve: g.info},
		{method: http.MethodPost, pattern: "/agui", endpoint: "agui_envelope", serve: g.envelope},
		{method: http.MethodPost, pattern: "/agui/agent/{workflow}/run", endpoint: "agui_run", serve: g.runAgent},
		{method: http.MethodPost, pattern: "/agui/agent/{workflow}/connect", endpoint: "agui_connect", serve: g.connectAgent},
		{method: http.MethodPost, pattern: "/agui/agent/{workflow}/stop/{chat}", endpoint: "agui_stop", serve: g.stopAgent},
		{method: http.MethodPost, pattern: "/agui/{workflow}", endpoint: "agui_run", serve: g.runAgent},
		{method: http.MethodPost, pattern: "/agui/{workflow}/connect", endpoint: "agui_connect", serve: g.connectAgent},
		{method: http.MethodPost, pattern: "/agui/{workflow}/stop/{chat}", endpoint: "agui_stop", serve: g.stopAgent},
	}
}

// runAgent is POST /agui/{workflow}: it may publish messages and answers.
func (g *Gateway) runAgent(c *call) error {
	body, err := g.readRunBody(c)
	if err != nil {
		return err
	}
	return g.startRun(c, c.params["workflow"], body, false)
}

// connectAgent is POST /agui/{workflow}/connect: it shows a chat, and never acts.
func (g *Gateway) connectAgent(c *call) error {
	body, err := g.readRunBody(c)
	if err != nil {
		return err
	}
	return g.startRun(c, c.params["workflow"], body, true)
}

// stopAgent is POST /agui/{workflow}/stop/{chat}. The body is optional: {"runId"} stops this run only.
func (g *Gateway) stopAgent(c *call) error {
	var body []byte
	if c.r.ContentLength != 0 {
		var err error
		if body, err = g.readBody(c); err != nil {
			return err
		}
	}
	return g.stop(c, c.params["workflow"], c.params["chat"], body)
}

// envelope is POST /agui with {method, params, body}, the other transport of CopilotKit's runtime.
func (g *Gateway) envelope(c *call) error {
	raw, err := g.readRunBody(c)
	if err != nil {
		return err
	}
	var in *agui.RuntimeRequest
	if err := c.decode(raw, func() error {
		in, err = agui.ReadRuntimeRequest(bytes.NewReader(raw), agui.InputLimits{Bytes: g.o.Limits.RunBody})
		return refusalOfInput(err)
	}); err != nil {
		return err
	}
	switch in.Method {
	case agui.MethodInfo:
		return g.info(c)
	case agui.MethodRun, agui.MethodConnect:
		return g.startRun(c, in.AgentID, in.Body, in.Method == agui.MethodConnect)
	case agui.MethodStop:
		return g.stop(c, in.AgentID, in.ThreadID, in.Body)
	}
	return refuse(http.StatusBadRequest, "unknown_method", fmt.Sprintf("unknown method %.40q: use info, agent/run, agent/connect or agent/stop", in.Method))
}

// startRun decodes the input of a run, checks who asks, and runs it.
func (g *Gateway) startRun(c *call, workflow string, body []byte, connect bool) (err error) {
	var in *agui.RunAgentInput
	if err := c.decode(body, func() error {
		in, err = agui.ReadInput(bytes.NewReader(body), agui.InputLimits{Bytes: g.o.Limits.RunBody})
		return refusalOfInput(err)
	}); err != nil {
		return err
	}
	if err := checkID("threadId", in.ThreadID); err != nil {
		return err
	}
	if err := g.aguiTarget(c, workflow, in.ThreadID); err != nil {
		return err
	}
	if !connect {
		if err := g.rates.Run(c.target.App, c.target.User); err != nil {
			return err
		}
	}
	leave, err := g.enterStream(c.endpoint, c.target)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := g.streamContext(c.r.Context(), c.id)
	defer cancel()
	r := newRun(g, c, in, connect)
	defer r.close()
	return r.serve(ctx)
}

// aguiTarget resolves who uses which workflow and chat, and refuses what is not theirs or does not exist.
func (g *Gateway) aguiTarget(c *call, workflow, chat string) (err error) {
	app := cmp.Or(c.r.Header.Get("X-App-Id"), c.r.URL.Query().Get("app_id"))
	c.target, err = c.id.Resolve(auth.Target{App: app, Workflow: workflow, Chat: chat})
	if errors.Is(err, auth.ErrMissingField) {
		return refuse(http.StatusBadRequest, codeMissingField, "the token is valid for several tenants: name one in the header X-App-Id, or as app_id in the query")
	}
	if err != nil {
		return err
	}
	c.searchFor(c.target.User)
	if _, err := g.workflows.Find(c.r.Context(), workflow); errors.Is(err, catalog.ErrUnknown) {
		return refuse(http.StatusNotFound, "unknown_workflow", fmt.Sprintf("there is no workflow %.80q: GET /agui/info lists them; workers announce theirs when they start", workflow))
	}
	_, err = g.mayUseChat(c.r.Context(), c.id, c.target)
	return err
}

// info is GET /agui/info: the workflows that the token may use, as agents.
func (g *Gateway) info(c *call) error {
	yes := true
	capabilities := &agui.Capabilities{
		Tools:          &agui.ToolsCapabilities{ClientProvided: &yes},
		State:          &agui.StateCapabilities{Snapshots: &yes, Deltas: &yes},
		HumanInTheLoop: &agui.HumanInTheLoopCapabilities{Interrupts: &yes},
	}
	info := agui.Info{Version: g.o.Version, Agents: map[string]agui.AgentInfo{}}
	workflows, err := g.workflows.List(c.r.Context())
	if err != nil {
		return unavailable(err)
	}
	for _, w := range workflows {
		// Clients put the name into URLs, partly without escaping it.
		if url.PathEscape(w.Name) != w.Name || !allowsWorkflow(c.id, w.Name) {
			continue
		}
		info.Agents[w.Name] = agui.AgentInfo{
			Name: w.Name, ClassName: "HttpAgent", Description: cmp.Or(w.Description, "Workflow "+w.Name), Capabilities: capabilities,
		}
	}
	writeJSON(c.w, http.StatusOK, info)
	return nil
}

// allowsWorkflow reports whether a token allows a workflow, in whichever of its tenants.
func allowsWorkflow(id *auth.Identity, workflow string) bool {
	return id.Workflows == nil || slices.Contains(id.Workflows, workflow)
}

// checkID refuses an id that no chat can have.
func checkID(field, id string) error {
	if _, err := decodeSegment(url.PathEscape(id)); err != nil {
		return refuse(http.StatusBadRequest, "invalid_field", field+" is not an id: use at most 1024 bytes without control characters")
	}
	return nil
}

// refusalOfInput is the refusal of an input that cannot be used; nil if it can.
func refusalOfInput(err error) error {
	if err == nil {
		return nil
	}
	var wrong *agui.InputError
	if !errors.As(err, &wrong) {
		return refuse(http.StatusBadRequest, codeBadJSON, "the body cannot be read: send a RunAgentInput")
	}
	text := wrong.Msg // without the code, which is next to it
	if wrong.Field != "" {
		text = wrong.Field + ": " + text
	}
	return refuse(wrong.Status(), wrong.Code, text)
}
