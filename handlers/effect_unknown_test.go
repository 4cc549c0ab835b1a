package handlers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// TestEffectThatAWorkerHasNotLearnedForbidsNoTakeover: of a tool that reports its effect itself, and has
// not yet reported it to a worker that has just started.
func TestEffectThatAWorkerHasNotLearnedForbidsNoTakeover(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		manifest bindings.Effect
		known    string
		target   target.Target
		code     events.Code // "" for one that runs again
	}{
		"learned":                            {"", "idempotent", nil, ""},
		"not learned":                        {"", "", nil, ""},
		"learned to be unsafe":               {"", "unsafe", nil, events.CodeInterrupted},
		"not learned, the manifest declares": {bindings.EffectUnsafe, "", nil, events.CodeInterrupted},
		"not learned, the manifest allows":   {bindings.EffectIdempotent, "", nil, ""},
		"not learned, trusted":               {"", "", &target.NATS{Subject: "a.b", TrustMetadata: true}, ""},
		"not learned, not trusted":           {"", "", &target.NATS{Subject: "a.b"}, events.CodeInterrupted},
	} {
		for _, by := range []string{"its own message", "a resume"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				t.Parallel()
				k := newKit(t, toolFunc(nothing))
				m := k.takeoverMessages()[by]
				k.bindKnower(c.manifest, c.known, c.target)
				k.orphaned("idempotent")
				require.Equal(t, inbound.Ack, k.Handle(t.Context(), m(1)).Do)
				require.Equal(t, c.code, k.response().Code)
			})
		}
		t.Run(name+" by an answer", func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			k.bindKnower(c.manifest, c.known, c.target)
			k.MaxTurnLife = 7 * 24 * time.Hour
			a := k.asker("turn", "") // the effect of its claim is replay, which is stricter than idempotent
			a.ask("1")
			a.park("1")
			k.handled(k.answers(2, a.question("1"), yes()))
			require.Equal(t, c.code, k.response().Code)
		})
	}
}

// bindKnower binds a tool that knows an effect, "" for one that has not learned it.
func (k *kit) bindKnower(manifest bindings.Effect, known string, to target.Target) {
	k.t.Helper()
	k.bind(manifest, time.Minute)
	b := k.Bindings().Bindings()[0]
	b.EffectDeclared, b.Target = manifest != "", to // no other worker has seen it
	k.Tool = func(*bindings.Binding) (tools.Invoker, error) { return &knower{nothing, known}, nil }
}
