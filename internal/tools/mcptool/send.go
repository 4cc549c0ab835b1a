package mcptool

import (
	"context"
	"errors"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/outbound"
	"github.com/oneturn/oneturn/internal/tools"
)

// One call on one session: send looks for a session that is alive, once takes it and decides whether it may be
// used again, carry runs the request, explain returns what an error means for the call.

// maxTries is how many sessions may turn out to be gone before a call is sent.
const maxTries = 3

// errUnsent reports that a session ended before it carried the call.
var errUnsent = errors.New("the session was gone before the call")

// send sends the call once. A session that is found dead before that is replaced.
func (t *Tool) send(
	ctx context.Context, op string, call *tools.Call, asked *round, answers mcp.InputResponseMap,
) (*activeCall, *pinned, *mcp.CallToolResult, error) {
	for range maxTries {
		u, pin, r, err := t.once(ctx, op, call, asked, answers)
		if !errors.Is(err, errUnsent) {
			return u, pin, r, err
		}
	}
	return nil, nil, nil, tools.Retryable(failf(events.CodeToolError, op, "%d sessions with MCP server %s failed before the call was sent; "+
		"the tool was not entered; see the log for what its process printed", maxTries, t.server.to.Name))
}

func (t *Tool) once(
	ctx context.Context, op string, call *tools.Call, asked *round, answers mcp.InputResponseMap,
) (u *activeCall, pin *pinned, r *mcp.CallToolResult, err error) {
	one, err := t.server.acquire(ctx, op)
	if err != nil {
		return nil, nil, nil, err
	}
	u = t.begin(ctx, op, call)
	good := false
	defer func() {
		t.server.release(one, good)
		u.stop(nil)
	}()
	if pin, err = t.findTool(ctx, op, one); err == nil {
		r, err = t.carry(ctx, one, u, pin, asked, answers)
	}
	good = err == nil || !u.cancelled() && one.alive() && !u.broken(err)
	return u, pin, r, err
}

// begin makes a call that a session can carry.
func (t *Tool) begin(ctx context.Context, op string, call *tools.Call) *activeCall {
	u := &activeCall{op: op, call: call, token: strconv.FormatUint(t.tokens.Add(1), 10), cancelSent: make(chan struct{})}
	u.ctx, u.stop = context.WithCancelCause(ctx)
	return u
}

// broken reports whether a session may not be used again after an error of a call.
func (u *activeCall) broken(err error) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.gone || u.stale || errors.Is(err, errUnsent) || u.lost
}

// carry runs the call on a session, and returns how it ends.
func (t *Tool) carry(
	ctx context.Context, one *session, u *activeCall, pin *pinned, asked *round, answers mcp.InputResponseMap,
) (*mcp.CallToolResult, error) {
	if asked != nil && asked.Digest != "" && asked.Digest != pin.digest {
		return nil, failf(events.CodeToolError, u.op, "the server has changed the tool since it asked (digest %s, now %s): "+
			"the answers are not for this tool, and the call was not continued; call it again", asked.Digest, pin.digest)
	}
	args, err := u.call.ArgsFor(u.op, pin.input)
	if err != nil {
		return nil, err
	}
	params := &mcp.CallToolParams{Name: t.to.Tool, Arguments: args, Meta: u.meta(), InputResponses: answers}
	if asked != nil {
		params.RequestState = asked.State
	}
	u.call.Enter()
	r, err := one.carry(u, params)
	switch {
	case err == nil:
		return r, nil
	case u.cancelled():
		return nil, u.cancelError(ctx)
	}
	return nil, t.explain(one, u, err)
}

// cancelError is why a call was cancelled: its context ended, or a question ended it.
func (u *activeCall) cancelError(ctx context.Context) error {
	if ctx.Err() == nil {
		return context.Cause(u.ctx)
	}
	return tools.Ended(ctx, u.op, "while it was running: "+outbound.Unknown)
}

// explain makes the error of a call that a session did not finish.
func (t *Tool) explain(one *session, u *activeCall, err error) error {
	u.mu.Lock()
	refused, gone, begun := u.refused, u.gone, u.begun
	u.mu.Unlock()
	switch {
	case refused != nil:
		return refused
	case gone, !begun:
		return errUnsent
	}
	if e := protocolError(err); e != nil {
		if e.Code == codeUnreadable && one.unreadableReason() != "" {
			return tools.Unknown(failf(events.CodeToolError, u.op, "the answer of MCP server %s cannot be used: %s; %s", t.server.to.Name, one.unreadableReason(), outbound.Unknown))
		}
		if unknownSession([]byte(e.Message)) {
			u.set(&u.stale)
		}
		return refusal(u, e)
	}
	u.set(&u.lost)
	why := one.explain(err)
	code := events.CodeToolError
	if one.link.tooLarge() {
		code = events.CodeTooLarge
	}
	failed := tools.Unknown(failf(code, u.op, "the session with MCP server %s failed: %s; %s", t.server.to.Name, why, outbound.Unknown))
	t.server.failed(failed, freeDeaths)
	return failed
}

// freeDeaths is how many calls in a row may cost a session before the next start has to wait.
const freeDeaths = 3

// carry sends a request on the session and waits for its end, or for the end of the call.
func (s *session) carry(u *activeCall, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	s.mu.Lock()
	u.link = s.link
	s.call = u
	s.garbled = ""
	s.mu.Unlock()
	done := async(func() (*mcp.CallToolResult, error) { return s.client.CallTool(withActiveCall(u.ctx, u), params) })
	select {
	case r := <-done:
		return r.value, r.err
	case <-u.ctx.Done(): // a server that does not read keeps the SDK from looking at it
		return nil, u.ctx.Err()
	}
}
