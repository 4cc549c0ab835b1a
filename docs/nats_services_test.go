package docs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/accounts"
	"github.com/oneturn/oneturn/internal/test/memhost"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/natstool"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/tool"
)

func TestManifestOfTheServicesPageIsFine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "Shop/oneturn.yaml", fenced(t, "nats-services.md", "yaml")[0].text)
	set, err := bindings.Load(t.Context(), bindings.Options{Root: dir})
	require.NoError(t, err)
	require.Empty(t, set.Diagnostics())
	require.Len(t, set.Bindings(), 2)
	require.Equal(t, &target.NATS{Service: "warehouse", Endpoint: "stock", TrustMetadata: true}, set.Bindings()[0].Target)
}

// TestRightsOfTheServicesPageAreEnough has the service of example 03 do all that it can, for a
// worker with the rights of the page and no others.
func TestRightsOfTheServicesPageAreEnough(t *testing.T) {
	t.Parallel()
	s := securedFor(t, accounts.Options{Services: []string{"warehouse"}})
	service := filepath.Join(t.TempDir(), "service")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s", "-o", service, "./examples/03-nats-service")
	build.Dir = ".."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.CommandContext(t.Context(), service)
	cmd.Env = append(os.Environ(), "NATS_URL="+s.as("warehouse"))
	p := launch(t, cmd, "is ready")

	nc, denied := s.connect("worker")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	invoke := func(to *target.NATS, call *tools.Call) (tools.Result, error) {
		tool := natstool.New(to, natstool.Options{Conn: nc})
		defer func() { require.NoError(t, tool.Close(ctx)) }()
		return tool.Invoke(ctx, call)
	}
	result, err := invoke(&target.NATS{Service: "warehouse", Endpoint: "stock"}, &tools.Call{Name: "stock", Args: map[string]any{"item": "tea"}})
	require.NoError(t, err)
	require.Contains(t, string(result.Value), "120 of tea")
	host := &memhost.Host{}
	order := &tools.Call{Name: "place_order", Args: map[string]any{"item": "tea", "count": "50"}, IdempotencyKey: "0123456789", Host: host}
	host.NewRun()
	_, err = invoke(&target.NATS{Service: "warehouse", Endpoint: "place_order"}, order)
	require.ErrorIs(t, err, tool.ErrParked)
	host.Answer("approve", map[string]any{"approved": true})
	host.NewRun()
	result, err = invoke(&target.NATS{Service: "warehouse", Endpoint: "place_order"}, order)
	require.NoError(t, err)
	require.Contains(t, string(result.Value), "Ordered 50 of tea.")
	require.NoError(t, nc.Flush())
	require.Empty(t, denied.list())
	require.Empty(t, p.stderr.String())
}
