//go:build chaos

package gatewaychaos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/internal/test/gatewaychaos"
)

// silence is how long a stream may send nothing, not even a comment: then its client connects again.
const silence = 8 * time.Second

// inputOf is the input of a run as JSON, with the messages as the client has them.
//
//nolint:tagliatelle // the names of AG-UI
type inputOf struct {
	Thread   string             `json:"threadId"`
	Run      string             `json:"runId"`
	Version  string             `json:"protocolVersion"`
	Messages []json.RawMessage  `json:"messages"`
	Tools    []any              `json:"tools"`
	Context  []any              `json:"context"`
	State    map[string]any     `json:"state"`
	Props    map[string]any     `json:"forwardedProps"`
	Resume   []agui.ResumeEntry `json:"resume,omitempty"`
}

// input returns an input with what the client displays.
func (c *userChat) input(own ...json.RawMessage) *inputOf {
	c.runNumber++
	return &inputOf{
		Thread: c.id, Run: fmt.Sprint(c.id, "-r", c.runNumber), Version: "1.0", Messages: append(append([]json.RawMessage{}, c.displayed...), own...),
		Tools: []any{}, Context: []any{}, State: map[string]any{}, Props: map[string]any{},
	}
}

// userMessage is a message of the user as JSON.
func userMessage(id, text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"id":%q,"role":"user","content":%q}`, id, text))
}

// stream posts an input to an endpoint of a gateway, and reads the stream to its end.
func (c *userChat) stream(ctx context.Context, g *gatewayProcess, endpoint string, in *inputOf) (gatewaychaos.End, *gatewaychaos.RunLog) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		c.stage.verdict.Brokenf("G5", "%s: %v", in.Run, err)
		return gatewaychaos.End{}, nil
	}
	idle := time.AfterFunc(silence, cancel)
	defer idle.Stop()
	response, err := c.post(ctx, g, "/agui/"+workflow+endpoint, body)
	if err != nil {
		c.stage.count("run: no reply")
		return gatewaychaos.End{}, nil
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		c.refused("run", response)
		return gatewaychaos.End{}, nil
	}
	decoded, err := agui.ReadInput(bytes.NewReader(body), agui.InputLimits{Bytes: 8 << 20})
	if err != nil {
		c.stage.verdict.Brokenf("G5", "%s: %v", in.Run, err)
		return gatewaychaos.End{}, nil
	}
	log := &gatewaychaos.RunLog{Name: fmt.Sprintf("%s of %s%s", in.Run, g.program.name, endpoint), Chat: c.id}
	for _, m := range decoded.Messages {
		if m.Role == agui.RoleUser && endpoint == "" || m.Role == agui.RoleTool { // a gateway that does not know it yet takes it for a new one
			log.Own = append(log.Own, m.ID)
		}
	}
	c.runs = append(c.runs, log)
	reader := &gatewaychaos.RunReader{Log: log, Input: decoded}
	end, err := reader.Read(&idleReader{response.Body, idle})
	switch {
	case err != nil:
		c.stage.count("run: cut")
	case end.Type == agui.TypeRunError:
		c.stage.count("run: " + end.Code)
		if !slices.Contains([]string{"unavailable", "rate_limited", "abort", "run_in_progress"}, end.Code) { // the last one where the chat was read slowly
			c.stage.verdict.Brokenf("G5", "%s ended with %s", log.Name, end.Code)
		}
	case end.Outcome != nil:
		c.stage.count("run: " + end.Outcome.Type)
	}
	if end.Messages != nil {
		c.displayed = end.Messages
	}
	return end, log
}

// idleReader resets a timer with each read.
type idleReader struct {
	io.Reader

	idle *time.Timer
}

func (w *idleReader) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	w.idle.Reset(silence)
	return n, err
}

func (c *userChat) post(ctx context.Context, g *gatewayProcess, path string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+g.proxy.Addr()+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("post: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+c.token)
	return c.stage.http.Do(r)
}

// refused checks why a request was refused.
func (c *userChat) refused(what string, response *http.Response) (code string) {
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return ""
	}
	var body struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(text, &body) // reported below
	c.stage.count(what + ": " + body.Code)
	switch body.Code {
	case "run_in_progress", "rate_limited", "unavailable", "not_running", "unknown": // the latter ones until a gateway has read what is new
	case "published", "accepted", "replayed", "already_answered", "closed", "cancelled", "expired", "ended", "stopping":
	default:
		c.stage.verdict.Brokenf("G5", "%s in chat %s: refused with %d: %.300s", what, c.id, response.StatusCode, text)
	}
	return body.Code
}

// request sends a request that is answered with one object, and returns its code; "" if there is no reply.
func (c *userChat) request(ctx context.Context, rng *rand.Rand, what, path string, body any) string {
	data, err := json.Marshal(body)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	response, err := c.post(ctx, c.stage.anyGateway(rng), path, data)
	if err != nil {
		c.stage.count(what + ": no reply")
		return ""
	}
	defer response.Body.Close()
	return c.refused(what, response)
}
