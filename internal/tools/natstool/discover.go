package natstool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"golang.org/x/sync/singleflight"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// The question to all instances of a service ($SRV.INFO), and one endpoint made of their answers: instances
// collects, choose takes the newest version, effect counts only if all agree.

// Keys of an endpoint's metadata.
const (
	MetaEffect      = "oneturn-effect"      // unsafe, replay, keyed, idempotent or none
	MetaInput       = "oneturn-input"       // JSON Schema of the arguments
	MetaOutput      = "oneturn-output"      // JSON Schema of the answer
	MetaVersion     = "oneturn-version"     // of what the endpoint does; the service's without it
	MetaDescription = "oneturn-description" // the service's without it
)

// Bounds of the descriptions of services.
const (
	maxInstances   = 64   // that have the endpoint
	maxServices    = 1024 // that answer
	maxInfo        = 1 << 20
	maxDescription = 4 << 10
	infoGap        = 100 * time.Millisecond // after which no more answers are expected
)

// instance is an answer to $SRV.INFO that has the endpoint.
type instance struct {
	micro.Info

	endpoint micro.EndpointInfo
}

// ask asks for the endpoint, once for all callers at the same time.
func (t *Tool) ask() <-chan singleflight.Result {
	return t.discovering.DoChan("", func() (any, error) {
		op := "describe " + t.name()
		if !t.begin() {
			return nil, failure(op, events.CodeToolError, "the tool is closed: its worker stops")
		}
		defer t.running.Done()
		t.next.Store(time.Now().Add(discoverPause).UnixNano())
		e, err := t.discover(op)
		if err != nil {
			t.o.Logger.Debug("a NATS service could not be described", "service", t.name(), "err", err)
			return nil, err
		}
		t.endpointSeen.Store(e)
		t.gone.Store(false)
		t.next.Store(0)
		return e, nil
	})
}

func (t *Tool) discover(op string) (*endpoint, error) {
	found, services, err := t.instances(op)
	switch {
	case len(found) == 0 && t.t.Service == "" && !t.t.TrustMetadata: // a subject may be all there is
		return &endpoint{subject: t.t.Subject, until: time.Now().Add(t.o.Fresh)}, nil
	case err != nil:
		return nil, err
	case services == 0:
		return nil, tools.Retryable(failure(op, events.CodeToolError, "no service answers at "+t.name()+": nothing has happened"))
	case len(found) == 0:
		return nil, tools.Retryable(failure(op, events.CodeToolError, fmt.Sprintf(
			"none of %d services that answer has this endpoint: name one of theirs, or its subject; nothing has happened", services)))
	}
	return t.choose(op, found)
}

// instances returns the instances that have the endpoint, and how many services have answered.
func (t *Tool) instances(op string) (found []instance, services int, err error) {
	name := service(&t.t)
	if name == "" {
		return nil, 0, failure(op, events.CodeToolError, fmt.Sprintf("%q is not a name of a service", cmp.Or(t.t.Service, t.t.Subject)))
	}
	subject := micro.APIPrefix + "." + micro.InfoVerb.String() + "." + name
	answers := make(chan *nats.Msg, maxServices)
	reply, gone, err := t.inbox.add(func(m *nats.Msg) {
		select {
		case answers <- m:
		default: // enough is known
		}
	})
	if err == nil {
		defer t.inbox.remove(reply)
		err = t.o.Conn.PublishRequest(subject, reply, nil)
	}
	if err != nil {
		return nil, 0, tools.Retryable(wrap(op, events.CodeToolError, "the service cannot be discovered: nothing was sent", err))
	}
	last := time.Now().Add(discoverTimeout)
	timer := time.NewTimer(discoverTimeout)
	defer timer.Stop()
	for services < maxServices && len(found) < maxInstances {
		select {
		case m := <-answers:
			if noService(m) {
				return nil, 0, nil
			}
			timer.Reset(min(infoGap, time.Until(last)))
			services++
			if i, ok := t.instance(m.Data); ok {
				found = append(found, i)
			}
			continue
		case <-timer.C:
		case <-gone:
		case <-t.ctx.Done():
		}
		break
	}
	return found, services, nil
}

// instance finds the endpoint in the description of a service.
func (t *Tool) instance(data []byte) (instance, bool) {
	var i instance
	if len(data) > maxInfo || json.Unmarshal(data, &i.Info) != nil || i.Name != service(&t.t) {
		return i, false
	}
	for _, e := range i.Endpoints {
		switch {
		case t.t.Subject != "" && e.Subject == t.t.Subject,
			t.t.Subject == "" && t.t.Endpoint != "" && e.Name == t.t.Endpoint,
			t.t.Subject == "" && t.t.Endpoint == "" && len(i.Endpoints) == 1:
			i.endpoint = e
			return i, true
		}
	}
	return i, false
}

// choose makes one description of the descriptions of several instances.
func (t *Tool) choose(op string, found []instance) (*endpoint, error) {
	slices.SortFunc(found, func(a, b instance) int { // by id among equals, so that all workers choose the same
		return cmp.Or(-compareVersions(a.Version, b.Version), strings.Compare(a.ID, b.ID))
	})
	subject, err := t.locate(op, found)
	if err != nil {
		return nil, err
	}
	newest := found[slices.IndexFunc(found, func(i instance) bool { return i.endpoint.Subject == subject })]
	meta := newest.endpoint.Metadata
	text := cmp.Or(meta[MetaDescription], newest.Description)
	e := &endpoint{
		subject: subject,
		about: tools.Description{
			Text:   strings.ToValidUTF8(text[:min(len(text), maxDescription)], ""),
			Effect: t.effect(found), Version: cmp.Or(meta[MetaVersion], newest.Version),
		},
		until: time.Now().Add(t.o.Fresh),
	}
	if schema := meta[MetaInput]; schema != "" {
		input, unchecked := model.CompileExternal(t.name(), json.RawMessage(schema))
		if input != nil {
			e.input, e.about.Input = input, json.RawMessage(schema)
		}
		t.left(e, "input", unchecked)
	}
	if schema := meta[MetaOutput]; schema != "" {
		output, unchecked := model.CompileExternalValue(t.name(), json.RawMessage(schema))
		if output != nil {
			e.output, e.about.Output = output, json.RawMessage(schema)
		}
		t.left(e, "output", unchecked)
	}
	return e, nil
}

// left records the rules of a schema that only the service can check.
func (t *Tool) left(e *endpoint, which string, rules []model.Problem) {
	if len(rules) == 0 {
		return
	}
	for _, p := range rules {
		e.about.Unchecked = append(e.about.Unchecked, which+" "+p.Place())
	}
	t.o.Logger.Warn("rules of the schema of a NATS service are left to it", "service", t.name(), "schema", which, "rules", len(rules))
}

// effect is the effect in the metadata, if it is trusted and all instances declare the same: any
// of them may get the call.
func (t *Tool) effect(found []instance) string {
	if !t.t.TrustMetadata {
		return ""
	}
	effect := found[0].endpoint.Metadata[MetaEffect]
	for _, i := range found {
		if i.endpoint.Metadata[MetaEffect] != effect {
			return ""
		}
	}
	if slices.Contains(events.Effects(), events.Effect(effect)) {
		return effect
	}
	return ""
}
