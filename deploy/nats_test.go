package deploy_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// The health check of the compose file has to answer 200 on a server that runs the mounted
// configuration, on the port and address the configuration names.
func TestServerConfigurationIsSafeAndAnswersItsHealthCheck(t *testing.T) {
	t.Parallel()
	s := load(t).Services["nats"]
	require.Equal(t, password, s.Environment["ONETURN_NATS_PASSWORD"])
	conf := filepath.Join(t.TempDir(), "nats.conf")
	require.NoError(t, os.WriteFile(conf, []byte(strings.Replace(read(t, "nats.conf"), "$ONETURN_NATS_PASSWORD", password, 1)), 0o600))
	opts, err := server.ProcessConfigFile(conf)
	require.NoError(t, err)

	require.True(t, opts.SyncAlways, "a power cut may not lose a claim")
	require.Equal(t, "/data", opts.StoreDir)
	require.Contains(t, s.Volumes, "nats-data:"+opts.StoreDir)
	require.Equal(t, "127.0.0.1", opts.HTTPHost, "monitoring stays inside the container")
	require.Equal(t, []string{"127.0.0.1:4222:" + strconv.Itoa(opts.Port)}, s.Ports)

	check, err := url.Parse(s.Healthcheck.Test[len(s.Healthcheck.Test)-1])
	require.NoError(t, err)
	require.Equal(t, net.JoinHostPort(opts.HTTPHost, strconv.Itoa(opts.HTTPPort)), check.Host)

	opts.Host, opts.Port, opts.HTTPPort = "127.0.0.1", server.RANDOM_PORT, server.RANDOM_PORT
	opts.StoreDir, opts.NoSigs, opts.NoLog = t.TempDir(), true, true
	srv, err := server.NewServer(opts)
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	require.True(t, srv.ReadyForConnections(10*time.Second))

	_, err = nats.Connect(srv.ClientURL())
	require.ErrorIs(t, err, nats.ErrAuthorization)
	nc, err := nats.Connect(srv.ClientURL(), nats.UserInfo("oneturn", password))
	require.NoError(t, err)
	nc.Close()

	check.Host = srv.MonitorAddr().String()
	body, code := get(t, check.String())
	require.Equal(t, http.StatusOK, code, body)
}

func get(t *testing.T, target string) (body string, code int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(data), res.StatusCode
}
