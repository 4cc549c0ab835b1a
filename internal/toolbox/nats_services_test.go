package toolbox_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/toolbox"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/oneturntest"
)

// TestSubjectOfAServiceOutlastsChangesOfManifests: a service that has moved is not called, although
// no manifest has named it for a while.
func TestSubjectOfAServiceOutlastsChangesOfManifests(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	nc := s.Connect()
	serve := func(subject string) micro.Service {
		service, err := micro.AddService(nc, micro.Config{Name: "bank", Version: "1.0.0"})
		require.NoError(t, err)
		require.NoError(t, service.AddEndpoint("pay", micro.HandlerFunc(func(r micro.Request) { _ = r.RespondJSON(subject) }), micro.WithEndpointSubject(subject)))
		require.NoError(t, nc.Flush())
		return service
	}
	set := func(nats string) *bindings.Set {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, "W"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "W", "oneturn.yaml"),
			[]byte("agents: {A: {}}\ntools:\n- {name: pay, agent: A, schema: {type: object}, nats: "+nats+"}\n"), 0o600))
		set, err := bindings.Load(t.Context(), bindings.Options{Root: dir})
		require.NoError(t, err)
		require.Len(t, set.Bindings(), 1)
		return set
	}
	box := toolbox.New(toolbox.Options{Conn: s.Connect()})
	t.Cleanup(func() { require.NoError(t, box.Close(context.WithoutCancel(t.Context()))) })
	var in *bindings.Set
	call := func(nats string) (tools.Result, error) {
		old := in
		in = set(nats)
		box.Adopt(old, in)
		tool, err := box.Find(in.Bindings()[0])
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		return tool.Invoke(ctx, &tools.Call{Name: "pay", Args: map[string]any{}})
	}
	first := serve("bank.pay")
	r, err := call("{service: bank}")
	require.NoError(t, err)
	require.Equal(t, `"bank.pay"`, string(r.Value))
	require.NoError(t, first.Stop())
	serve("bank.other")
	_, err = call("{subject: elsewhere}")
	require.Error(t, err)
	for _, same := range []string{"{service: bank}", "{service: bank, trust_metadata: true}"} {
		_, err = call(same)
		require.ErrorContains(t, err, `was at subject "bank.pay" and now names "bank.other"`)
	}
	r, err = call("{service: bank, subjects: [bank.other]}")
	require.NoError(t, err, "the manifest allows it")
	require.Equal(t, `"bank.other"`, string(r.Value))
}
