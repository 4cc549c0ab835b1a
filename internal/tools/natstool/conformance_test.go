package natstool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/conformance"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/natstool"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/oneturntest"
)

func TestMain(m *testing.M) {
	if oneturntest.RunRole(map[string]oneturntest.Role{"suite": serveSuite}) {
		return
	}
	oneturntest.VerifyNoLeaks(m)
}

// startSuite starts a process with the functions of the suite as a service of this name.
func startSuite(t *testing.T, s *oneturntest.Server, nc *nats.Conn, name string) {
	t.Helper()
	oneturntest.StartProcess(t, "suite", envURL+"="+s.URL(), envName+"="+name)
	eventually(t, func() bool {
		m, err := nc.Request("$SRV.INFO."+name, nil, time.Second)
		var info micro.Info
		return err == nil && json.Unmarshal(m.Data, &info) == nil && len(info.Endpoints) == len(functions())
	}, "the service is there")
}

func TestGoServicesConform(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	nc := s.Connect()
	startSuite(t, s, nc, "suite")
	startSuite(t, s, nc, "mortal") // what crashes takes all calls of its process with it
	conform(t, nc, "go", func(service, function string) *target.NATS { return &target.NATS{Service: service, Endpoint: function} })
}

// TestPlainPythonServicesConform has services that know nothing but the protocol of the page.
func TestPlainPythonServicesConform(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	nc := s.Connect()
	startPython(t, s, "suite")
	startPython(t, s, "mortal")
	conform(t, nc, "python", func(service, function string) *target.NATS { return &target.NATS{Subject: service + "." + function} })
}

func startPython(t *testing.T, s *oneturntest.Server, name string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", "testdata/suite.py", s.URL(), name)
	cmd.Env = append(os.Environ(), "PYTHONPATH=../../../examples/03-nats-service/quotes", "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have crashed, as asked
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
}

func conform(t *testing.T, nc *nats.Conn, name string, where func(service, function string) *target.NATS) {
	t.Helper()
	const limit = 768 << 10
	var mu sync.Mutex
	made := map[string]*natstool.Tool{}
	conformance.Run(t, conformance.Kind{
		Name: name,
		Invoker: func(function string) tools.Invoker {
			mu.Lock()
			defer mu.Unlock()
			if made[function] == nil {
				service := "suite"
				if function == "crash" {
					service = "mortal"
				}
				made[function] = natstool.New(where(service, function), natstool.Options{Conn: nc, MaxAnswer: limit})
			}
			return made[function]
		},
		MaxOutput: limit,
		Cannot:    map[string]string{conformance.CrashIsKnown: "no status reports that a subscriber is gone once it has the request"},
		Close: func(ctx context.Context) error {
			var errs []error
			for _, tool := range made {
				errs = append(errs, tool.Close(ctx))
			}
			return errors.Join(errs...)
		},
	})
}
