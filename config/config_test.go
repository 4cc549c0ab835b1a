package config_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/provision"
)

var update = flag.Bool("update", false, "write docs/configuration.md again")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	fs := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	var cfg config.Worker
	if err := config.BindFlags(fs, &cfg); err != nil {
		fmt.Println(err)
		return
	}
	_ = fs.Parse([]string{"--slots", "many", "--soft-stop=10"})
	fmt.Println(config.Load(fs, os.LookupEnv, &cfg))
	// Output:
	// configuration: --slots: "many" is not a whole number; try --slots=256
	// configuration: --soft-stop: invalid duration "10", a number and a unit (ms, s, m, h); try --soft-stop=25s
}

// environment is an environment of these variables only.
func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		text, ok := vars[name]
		return text, ok
	}
}

// load loads a T from flags and variables.
func load[T any](t *testing.T, args []string, vars map[string]string) (T, error) {
	t.Helper()
	var cfg T
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	require.NoError(t, config.BindFlags(fs, &cfg))
	require.NoError(t, fs.Parse(args))
	err := config.Load(fs, environment(vars), &cfg)
	return cfg, err
}

// file writes a config file.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "worker.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestDocumentationIsGeneratedFromTheStructs(t *testing.T) {
	t.Parallel()
	name := filepath.Join("..", "docs", "configuration.md")
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(config.Markdown()), 0o600))
	}
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, config.Markdown(), string(text), "run go test ./config -update")
}

func TestDefaultsAreValidAndAgreeWithProvision(t *testing.T) {
	t.Parallel()
	worker, err := load[config.Worker](t, nil, nil)
	require.NoError(t, err)
	require.True(t, worker.Embeds())
	require.Equal(t, 256, worker.Slots)
	require.Equal(t, 25*time.Second, worker.SoftStop)
	require.Equal(t, "127.0.0.1:8080", worker.HTTP)
	require.Equal(t, provision.DefaultRetention, worker.Retention)
	require.Equal(t, provision.DefaultMaxTurnLife, worker.MaxTurnLife)
	require.Equal(t, provision.DefaultMaxEventAge, worker.MaxEventAge)
	require.Equal(t, provision.DefaultAckWait, worker.AckWait)

	p, err := load[config.Provision](t, nil, nil)
	require.NoError(t, err)
	require.Equal(t, provision.DefaultRetention, p.Retention)
	require.Equal(t, provision.DefaultMaxTurnLife, p.MaxTurnLife)
	require.Equal(t, provision.DefaultMaxEventAge, p.MaxEventAge)
	require.Equal(t, provision.DefaultAckWait, p.AckWait)
	require.Equal(t, provision.DefaultDeadAge, p.DeadAge)
	require.Equal(t, provision.DefaultContextAge, p.ContextAge)
	require.EqualValues(t, provision.DefaultInMaxBytes, p.InMaxBytes)
	require.EqualValues(t, provision.DefaultDeadMaxBytes, p.DeadMaxBytes)
	require.EqualValues(t, provision.DefaultBlobsMaxBytes, p.BlobsMaxBytes)
	require.Equal(t, []string{"default"}, p.Pools)

	for _, err := range []error{second(load[config.Publisher](t, nil, nil)), second(load[config.Turnctl](t, nil, nil))} {
		require.NoError(t, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestFlagWinsOverVariableOverFileOverDefault(t *testing.T) {
	t.Parallel()
	name := file(t, "slots: 10\nsoft_stop: 1s\npool: gpu\n")
	cfg, err := load[config.Worker](t,
		[]string{"--slots", "30"},
		map[string]string{"ONETURN_CONFIG": name, "ONETURN_SLOTS": "20", "ONETURN_SOFT_STOP": "2s", "ONETURN_HTTP": ""})
	require.NoError(t, err)
	require.Equal(t, 30, cfg.Slots)
	require.Equal(t, 2*time.Second, cfg.SoftStop)
	require.Equal(t, "gpu", cfg.Pool)
	require.Equal(t, "127.0.0.1:8080", cfg.HTTP, "an empty variable counts as not set")
	require.Equal(t, "workflows", cfg.Workflows)
}

func TestHTTPCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		vars map[string]string
	}{
		"empty flag":    {[]string{"--http", ""}, nil},
		"off":           {[]string{"--http=off"}, nil},
		"variable":      {nil, map[string]string{"ONETURN_HTTP": "off"}},
		"empty in file": {[]string{"--config", file(t, `http: ""`)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := load[config.Worker](t, tc.args, tc.vars)
			require.NoError(t, err)
			require.Empty(t, cfg.HTTP)
		})
	}
}

func TestPlainLogVariablesOfMozaiksWork(t *testing.T) {
	t.Parallel()
	cfg, err := load[config.Worker](t, nil, map[string]string{"LOG_LEVEL": "WARNING", "LOGS_AS_JSON": "True"})
	require.NoError(t, err)
	require.Equal(t, "warn", cfg.LogLevel)
	require.True(t, cfg.LogsAsJSON)

	cfg, err = load[config.Worker](t, nil, map[string]string{"LOG_LEVEL": "DEBUG", "ONETURN_LOG_LEVEL": "error"})
	require.NoError(t, err)
	require.Equal(t, "error", cfg.LogLevel, "our own name is the more specific one")
}

func TestEveryTypeIsRead(t *testing.T) {
	t.Parallel()
	p, err := load[config.Provision](t, []string{
		"--pools", "a,b", "--pools=c", "--in-max-bytes", "10GB", "--dead-max-bytes=64 MiB", "--replicas=3", "--memory",
		"--ack-wait", "1m", "-o", "JSON", "--nats", "nats://a:4222,nats://b:4222",
	}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, p.Pools)
	require.EqualValues(t, 10_000_000_000, p.InMaxBytes)
	require.EqualValues(t, 64<<20, p.DeadMaxBytes)
	require.Equal(t, 3, p.Replicas)
	require.True(t, p.Memory)
	require.Equal(t, time.Minute, p.AckWait)
	require.Equal(t, "json", p.Format)
	require.Equal(t, "nats://a:4222,nats://b:4222", string(p.URL))
}

func TestJSONFileAndListsAndKeysOfOtherCommandsWork(t *testing.T) {
	t.Parallel()
	cfg, err := load[config.Worker](t, []string{"--config", file(t, `{"slots": 7, "tool_env": ["A", "B_*"], "wait": true, "watch": false}`)}, nil)
	require.NoError(t, err)
	require.Equal(t, 7, cfg.Slots)
	require.Equal(t, []string{"A", "B_*"}, cfg.ToolEnv)
	require.False(t, cfg.Watch)

	for _, text := range []string{"", "# nothing yet\n"} {
		_, err := load[config.Worker](t, []string{"--config", file(t, text)}, nil)
		require.NoError(t, err)
	}
}

func TestInvalidSettingsAreReportedTogetherWithAValueThatWorks(t *testing.T) {
	t.Parallel()
	name := file(t, "slot: 5\nsoft-stop: 5s\npool: {a: b}\npython_pool: 0\nhttp: localhost\nhttp: localhost\nstore:\n")
	_, err := load[config.Worker](t,
		[]string{"--config", name, "--tool-timeout", "-1s", "--watch=maybe", "--log-level=loud"},
		map[string]string{"ONETURN_ACK_WAIT": "30"})
	var wrong *diag.Error
	require.ErrorAs(t, err, &wrong)
	for _, want := range []string{
		`"slot" in ` + name + `:1: unknown setting; did you mean slots?`,
		`"soft-stop" in ` + name + `:2: unknown setting; did you mean soft_stop?`,
		`"pool" in ` + name + `:3: is neither a plain value nor a list`,
		`python_pool in ` + name + `:4: 0 is outside 1 to 256; try python_pool: 4`,
		`http in ` + name + `:5: "localhost" is not HOST:PORT; try http: 127.0.0.1:8080`,
		`"http" in ` + name + `:6: duplicate setting`,
		`"store" in ` + name + `:7: is neither a plain value`,
		`--tool-timeout: -1s is outside 1ms to 24h; try --tool-timeout=60s`,
		`--watch: "maybe" is neither true nor false; --watch is a switch: use it without a value`,
		`--log-level: "loud" is none of debug, info, warn, error; try --log-level=info`,
		`ONETURN_ACK_WAIT: invalid duration "30"`,
	} {
		require.ErrorContains(t, err, want)
	}
	require.Len(t, wrong.Findings, 11)
	require.NotContains(t, err.Error(), "try name ")
}

func TestBrokenFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a list":        "- slots",
		"a scalar":      "slots",
		"two documents": "slots: 1\n---\nslots: 2\n",
		"no YAML":       "slots: [1\n",
		"an alias":      "pool: &a x\nworkflows: *a\n",
		"a nested list": "tool_env: [[a]]",
		"itself":        "config: other.yaml",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load[config.Worker](t, []string{"--config", file(t, text)}, nil)
			var wrong *diag.Error
			require.ErrorAs(t, err, &wrong)
			require.Len(t, wrong.Findings, 1)
		})
	}
	for _, name := range []string{filepath.Join(t.TempDir(), "none.yaml"), t.TempDir(), file(t, strings.Repeat("# long\n", 1<<18))} {
		_, err := load[config.Worker](t, []string{"--config", name}, nil)
		require.ErrorContains(t, err, "cannot be read")
	}
}

func TestSwitchWithANumberNamesTheTimeLimit(t *testing.T) {
	t.Parallel()
	_, err := load[config.Publisher](t, []string{"--wait=5"}, nil)
	require.EqualError(t, err, `configuration: --wait: "5" is neither true nor false; `+
		`--wait is a switch: use it without a value, and set the time limit with --timeout, for example --timeout=1m`)
	_, err = load[config.Publisher](t, nil, map[string]string{"ONETURN_WAIT": "5"})
	require.ErrorContains(t, err, `ONETURN_WAIT: "5" is neither true nor false; try ONETURN_WAIT=false`)
}

func TestManifestAsConfigFileIsReportedAsSuch(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"workflow: Hello\nagents: {A: {}}\n", "models: {M: {type: object}}\ntools: []\n", "tools:\n- {name: a, file: a.py}\n", "servers: {}\n",
	} {
		name := file(t, text)
		_, err := load[config.Worker](t, []string{"--config", name}, nil)
		require.ErrorContains(t, err, name+":")
		require.ErrorContains(t, err, ": this is a workflow manifest, not a config file; pass the folder that holds its workflow folder with --workflows, and omit --config")
		var wrong *diag.Error
		require.ErrorAs(t, err, &wrong)
		require.Len(t, wrong.Findings, 1, "its keys are not reported one by one")
	}
}

func TestSettingsThatContradictEachOtherAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"two servers":        {[]string{"--nats=nats://a", "--context=b"}, "--context: and --nats are mutually exclusive"},
		"two identities":     {[]string{"--creds=a", "--nkey=b"}, "--nkey: and --creds are mutually exclusive"},
		"half a certificate": {[]string{"--tls-cert=a"}, "--tls-cert: and --tls-key must be set together"},
		"wildcard prefix":    {[]string{"--prefix=a.*"}, "--prefix: "},
		"wildcard pool":      {[]string{"--pool=a.>"}, "--pool: "},
		"short retention":    {[]string{"--retention=24h"}, "try --retention=193h0m0s"},
		"open server":        {[]string{"--listen=0.0.0.0:4222"}, "try --listen=127.0.0.1:4222"},
		"no address":         {[]string{"--listen="}, `--listen: "" is not HOST:PORT; try --listen=127.0.0.1:4222`},
		"half a password":    {[]string{"--nats-user=u"}, "--nats-user: and the password must be set together"},
		"half a sign-in":     {[]string{"--listen-user=u"}, "--listen-password must be set together"},
		"store elsewhere":    {[]string{"--nats=nats://a", "--store=x"}, "--store: belongs to the embedded server, which is not started because --nats is set; omit one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load[config.Worker](t, tc.args, nil)
			require.ErrorContains(t, err, tc.want)
		})
	}
	_, err := load[config.Worker](t, []string{"--listen=127.0.0.1:0"}, map[string]string{"ONETURN_NATS": "nats://a"})
	require.ErrorContains(t, err, "--listen: belongs to the embedded server, which is not started because ONETURN_NATS is set; omit one of them")
	_, err = load[config.Provision](t, []string{"--retention=24h", "--pools=,", "--replicas=2", "--in-max-bytes=1XB"}, nil)
	require.ErrorContains(t, err, "--replicas: \"2\" is none of 1, 3, 5")
	require.ErrorContains(t, err, "--in-max-bytes: invalid size \"1XB\"")
	_, err = load[config.Provision](t, []string{"--retention=24h", "--pools=,"}, nil)
	require.ErrorContains(t, err, "--retention=193h0m0s")
	require.ErrorContains(t, err, "--pools: no pool set")
}

func TestOpenServerWithPasswordIsAccepted(t *testing.T) {
	t.Parallel()
	cfg, err := load[config.Worker](t, []string{"--listen=0.0.0.0:4222", "--listen-user=u"},
		map[string]string{"ONETURN_LISTEN_PASSWORD": "hunter2"})
	require.NoError(t, err)
	require.Equal(t, "hunter2", string(cfg.ListenPassword))
}

func TestWorkerWithItsOwnServerMayKeepEmbeddedSettingsInTheFile(t *testing.T) {
	t.Parallel()
	cfg, err := load[config.Worker](t, []string{"--nats=nats://a", "--config", file(t, "store: x\n")}, nil)
	require.NoError(t, err)
	require.False(t, cfg.Embeds())
}

func TestOnlyStructPointersAreLoaded(t *testing.T) {
	t.Parallel()
	for _, cfg := range []any{nil, config.Worker{}, (*config.Worker)(nil), new(int)} {
		require.Error(t, config.Load(nil, environment(nil), cfg))
		require.Error(t, config.BindFlags(pflag.NewFlagSet("x", pflag.ContinueOnError), cfg))
	}
	var cfg config.Worker
	require.NoError(t, config.Load(nil, environment(nil), &cfg), "flags are optional")
}
