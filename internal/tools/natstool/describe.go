package natstool

import (
	"context"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// The endpoint as it is known: calls use what was discovered last and have it refreshed in the background; only
// without any subject do they wait (awaitEndpoint). discover.go asks the services.

const (
	discoverTimeout = 2 * time.Second // for all answers
	discoverPause   = 5 * time.Second // between two questions of which the first had no answer
)

// endpoint is the discovered endpoint of a tool. It is immutable.
type endpoint struct {
	subject string
	about   tools.Description
	input   *model.Model // nil if it declares none
	output  *model.Value // nil if it declares none
	until   time.Time    // when it is no longer fresh
}

// Describe implements [tools.Describer].
func (t *Tool) Describe(ctx context.Context) (tools.Description, error) {
	e := t.endpointSeen.Load()
	if e == nil || time.Now().After(e.until) {
		if !t.begin() {
			return tools.Description{}, failure("describe "+t.name(), events.CodeToolError, "the tool is closed: its worker stops")
		}
		defer t.running.Done()
		var err error
		if e, err = t.awaitEndpoint(ctx); err != nil {
			return tools.Description{}, err
		}
	}
	return e.about, nil
}

// Known implements [tools.Describer]. What is not known, or no longer fresh, is asked for in the
// background if the manifest gives a name to ask for or trusts its metadata.
func (t *Tool) Known() (tools.Description, bool) {
	e := t.endpointSeen.Load()
	t.refresh(e)
	if e == nil {
		return tools.Description{}, false
	}
	return e.about, true
}

// endpoint returns where a call goes. It asks only if it has no subject.
func (t *Tool) endpoint(ctx context.Context, op string) (*endpoint, error) {
	e := t.endpointSeen.Load()
	switch {
	case t.t.Subject != "" && t.reserved(t.t.Subject):
		return nil, failure(op, events.CodeToolError, fmt.Sprintf("subject %q is reserved for the product: use another one", t.t.Subject))
	case t.t.Subject == "" && (e == nil || t.gone.Load()):
		e, err := t.awaitEndpoint(ctx)
		if err == nil {
			return e, nil
		}
		if ctx.Err() != nil {
			return nil, (&conversation{tool: t, op: op, ctx: ctx}).ended()
		}
		return nil, err
	case e != nil:
		t.refresh(e)
		return e, nil
	case !plainSubject(t.t.Subject):
		return nil, failure(op, events.CodeToolError, fmt.Sprintf("invalid subject %q: it must be one without wildcards", t.t.Subject))
	}
	t.refresh(nil)
	return &endpoint{subject: t.t.Subject}, nil
}

// refresh asks in the background, unless e is fresh, or it was asked a moment ago, or there is
// nothing to discover.
func (t *Tool) refresh(e *endpoint) {
	now := time.Now()
	if e != nil && now.Before(e.until) || t.t.Service == "" && !t.t.TrustMetadata || now.UnixNano() < t.next.Load() {
		return
	}
	t.ask()
}

// awaitEndpoint asks for the endpoint, and waits.
func (t *Tool) awaitEndpoint(ctx context.Context) (*endpoint, error) {
	select {
	case r := <-t.ask():
		e, _ := r.Val.(*endpoint)
		return e, r.Err
	case <-ctx.Done():
		return nil, wrap("describe "+t.name(), events.CodeTimeout, "no service has answered in time", context.Cause(ctx))
	}
}
