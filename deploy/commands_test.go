package deploy_test

import (
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/gateway/auth"
)

// settings reads the command line and the environment of a service as its command would:
// every flag and every ONETURN_ variable has to exist, every value has to be accepted.
func settings(t *testing.T, name string, cfg any) {
	t.Helper()
	s := load(t).Services[name]
	args := s.Command
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		args = args[1:] // a command of turnctl
	}
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	require.NoError(t, config.BindFlags(flags, cfg))
	require.NoError(t, flags.Parse(args))
	require.Empty(t, flags.Args())

	env := maps.Clone(stages(t)[s.Build.Target].env)
	maps.Copy(env, s.Environment)
	for key := range env {
		flag, ours := strings.CutPrefix(key, "ONETURN_")
		flag = strings.ReplaceAll(strings.ToLower(flag), "_", "-")
		require.True(t, ours && flags.Lookup(flag) != nil, "%s sets %s, which its command does not read", name, key)
	}
	lookup := func(key string) (string, bool) {
		value, ok := env[key]
		return value, ok
	}
	require.NoError(t, config.Load(flags, lookup, cfg))
}

func TestWorkersAcceptTheirFlagsAndVariables(t *testing.T) {
	t.Parallel()
	var cfg config.Worker
	settings(t, "worker", &cfg)
	require.False(t, cfg.Embeds(), "both workers share one server")
	require.Equal(t, "nats:4222", hostOf(t, cfg.URL))
	require.Equal(t, []string{"oneturn", password}, []string{cfg.User, string(cfg.Password)})
	require.True(t, cfg.LogsAsJSON)
}

func TestProvisionAcceptsItsFlagsAndVariables(t *testing.T) {
	t.Parallel()
	var cfg config.Provision
	settings(t, "provision", &cfg)
	require.Equal(t, "provision", load(t).Services["provision"].Command[0])
	require.Equal(t, "nats:4222", hostOf(t, cfg.URL))
	require.Equal(t, []string{"oneturn", password}, []string{cfg.User, string(cfg.Password)})
}

func TestPublisherAcceptsItsVariables(t *testing.T) {
	t.Parallel()
	var cfg config.Publisher
	settings(t, "publisher", &cfg)
	require.Equal(t, "nats:4222", hostOf(t, cfg.URL))
	require.Equal(t, []string{"oneturn", password}, []string{cfg.User, string(cfg.Password)})
}

// hostOf returns host and port of the one server in list.
func hostOf(t *testing.T, list config.URL) string {
	t.Helper()
	u, err := url.Parse(string(list))
	require.NoError(t, err)
	return u.Host
}

func TestWorkersAreKilledOnlyAfterTheirSoftStop(t *testing.T) {
	t.Parallel()
	var cfg config.Worker
	settings(t, "worker", &cfg)
	// After the soft stop come the cancelled tools: a Python child has 5 s to end.
	require.GreaterOrEqual(t, load(t).Services["worker"].StopGracePeriod, cfg.SoftStop+10*time.Second)
}

func TestWorkersAreAskedForTheirHealthWhereTheyListen(t *testing.T) {
	t.Parallel()
	var cfg config.Worker
	settings(t, "worker", &cfg)
	s := load(t).Services["worker"]
	_, port, ok := strings.Cut(cfg.HTTP, ":")
	require.True(t, ok)
	require.Equal(t, []string{port}, s.Expose)
	want := "'http://127.0.0.1:" + port + "/readyz'"
	require.Contains(t, strings.Join(s.Healthcheck.Test, " "), want)

	image := read(t, "../Dockerfile")
	require.Contains(t, image, want)
	require.Contains(t, image, "\nEXPOSE "+port+"\n")
}

func TestGatewayAcceptsItsFlagsAndVariables(t *testing.T) {
	t.Parallel()
	var cfg config.Gateway
	settings(t, "gateway", &cfg)
	require.Equal(t, "nats:4222", hostOf(t, cfg.URL))
	require.Equal(t, []string{"oneturn", password}, []string{cfg.User, string(cfg.Password)})
	require.True(t, cfg.LogsAsJSON)
	require.Empty(t, cfg.Origins, "by default only pages of the same address")
	require.Greater(t, load(t).Services["gateway"].StopGracePeriod, cfg.Drain)

	_, port, _ := strings.Cut(cfg.Listen, ":")
	require.Equal(t, []string{"127.0.0.1:8090:" + port}, load(t).Services["gateway"].Ports, "its private address is not published")
	check := load(t).Services["gateway"].Healthcheck.Test
	require.Equal(t, []string{"CMD", "/usr/local/bin/gateway", "ready", "--http", cfg.HTTP}, check)
	require.Contains(t, read(t, "../Dockerfile"), "/out/bin/gateway /usr/local/bin/\n")
}

func TestMountedTokensAreAcceptedAndGrantNothingAtFirst(t *testing.T) {
	t.Parallel()
	var cfg config.Gateway
	settings(t, "gateway", &cfg)
	text := read(t, strings.Replace(cfg.Tokens, "/tokens", "tokens", 1))
	open := func(text string) *auth.StaticTokens {
		file := filepath.Join(t.TempDir(), "tokens.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		tokens, err := auth.OpenTokens(auth.StaticConfig{Path: file})
		require.NoError(t, err)
		return tokens
	}
	_, err := open(text).Authenticate(t.Context(), auth.Request{Token: "test"})
	require.Error(t, err)

	// With the entry of the comment, whose hash is of the token "test".
	entry := strings.NewReplacer("#   - sha256:", "- sha256:", "#     app:", "  app:", "#     user:", "  user:", "[]", "").Replace(text)
	who, err := open(entry).Authenticate(t.Context(), auth.Request{Token: "test"})
	require.NoError(t, err)
	require.Equal(t, "ada", who.User)
}

func TestMountedWorkflowBindsItsTool(t *testing.T) {
	t.Parallel()
	var cfg config.Worker
	settings(t, "worker", &cfg)
	source := ""
	for _, v := range load(t).Services["worker"].Volumes {
		if mount, ok := v.(map[string]any); ok && mount["target"] == cfg.Workflows {
			source, _ = mount["source"].(string)
		}
	}
	require.NotEmpty(t, source, "nothing is mounted at %s", cfg.Workflows)

	set, err := bindings.Load(t.Context(), bindings.Options{Root: "../" + source})
	require.NoError(t, err)
	for _, d := range set.Diagnostics() {
		require.NotEqual(t, diag.SeverityError, d.Severity, d.Message)
	}
	binding, err := set.Resolve("Hello", "Greeter", "Greeting")
	require.NoError(t, err)
	require.Equal(t, "greet", binding.Tool)
	info, err := os.Stat("../" + source + "/" + binding.File)
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular())
}
