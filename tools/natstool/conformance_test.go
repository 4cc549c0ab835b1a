package natstool_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/tools"
	"github.com/oneturn/oneturn/tools/conformance"
	"github.com/oneturn/oneturn/tools/natstool"
	"github.com/oneturn/oneturn/tools/target"
	"github.com/oneturn/oneturn/turntest"
)

func TestMain(m *testing.M) {
	if turntest.RunRole(map[string]turntest.Role{"suite": serveSuite}) {
		return
	}
	turntest.VerifyNoLeaks(m)
}

// startSuite starts a process with the functions of the suite as a service of this name.
func startSuite(t *testing.T, s *turntest.Server, nc *nats.Conn, name string) {
	t.Helper()
	turntest.StartProcess(t, "suite", envURL+"="+s.URL(), envName+"="+name)
	eventually(t, func() bool {
		_, err := nc.RequestWithContext(t.Context(), "$SRV.PING."+name, nil)
		return err == nil
	}, "the service is there")
}

func TestServicesInProcessesOfTheirOwnConform(t *testing.T) {
	t.Parallel()
	s := turntest.NewServer(t)
	nc := s.Connect()
	startSuite(t, s, nc, "suite")
	startSuite(t, s, nc, "mortal") // what crashes takes all calls of its process with it
	const limit = 768 << 10
	var mu sync.Mutex
	made := map[string]*natstool.Tool{}
	conformance.Run(t, conformance.Kind{
		Name: "nats",
		Invoker: func(function string) tools.Invoker {
			mu.Lock()
			defer mu.Unlock()
			if made[function] == nil {
				service := "suite"
				if function == "crash" {
					service = "mortal"
				}
				made[function] = natstool.New(&target.NATS{Service: service, Endpoint: function}, natstool.Options{Conn: nc, MaxAnswer: limit})
			}
			return made[function]
		},
		MaxOutput: limit,
		Cannot:    map[string]string{conformance.CrashIsKnown: "nobody tells that a subscriber is gone once it has the request"},
		Close: func(ctx context.Context) error {
			var errs []error
			for _, tool := range made {
				errs = append(errs, tool.Close(ctx))
			}
			return errors.Join(errs...)
		},
	})
}
