//go:build frontend

package frontend_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
)

// stage has the programs that the page needs, which a test may kill and start again.
type stage struct {
	*testing.T

	page     string   // address of the pages
	gateway  string   // address
	settings []string // for the tests in Node
	mu       sync.Mutex
	starts   map[string]func() *exec.Cmd
	ready    map[string]string // what a program prints when it is ready
	running  map[string]*exec.Cmd
}

// start starts a program and waits until it is ready.
func (s *stage) start(name string) error {
	cmd, out := s.starts[name](), &harness.Output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	s.mu.Lock()
	s.running[name] = cmd
	s.mu.Unlock()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-look.C {
		if strings.Contains(out.String(), s.ready[name]) {
			return nil
		}
	}
	return fmt.Errorf("%s is not ready: %s", name, out)
}

// kill kills a program as a crash would.
func (s *stage) kill(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cmd := s.running[name]; cmd != nil {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait() // killed
		delete(s.running, name)
	}
}

// serve lets the tests in Node kill and start programs: POST /kill/{name} and /start/{name}.
func (s *stage) serve() string {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /kill/{name}", func(_ http.ResponseWriter, r *http.Request) { s.kill(r.PathValue("name")) })
	mux.HandleFunc("POST /start/{name}", func(w http.ResponseWriter, r *http.Request) {
		if err := s.start(r.PathValue("name")); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	served := httptest.NewServer(mux)
	s.Cleanup(served.Close)
	return served.URL
}

// pageProgram builds the program that serves the pages, once for all tests.
var pageProgram = sync.OnceValues(func() (string, error) {
	program, err := filepath.Abs("../../../bin/frontend-page")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-trimpath", "-o", program, "./examples/12-frontend")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

// newStage starts a gateway and the pages of examples/12-frontend, and a worker if withWorker is true; otherwise the caller has started
// one. The programs end with the test.
func newStage(t *testing.T, server *oneturntest.Server, withWorker bool) *stage {
	t.Helper()
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	page, err := pageProgram()
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "bin/gateway"), "run make build")

	nats, free := server.URL(), harness.FreeAddresses(t, 2)
	gateway, shown := free[0], free[1]
	command := func(program string, args ...string) func() *exec.Cmd {
		return func() *exec.Cmd {
			cmd := exec.CommandContext(t.Context(), program, args...)
			cmd.Dir = root
			return cmd
		}
	}
	worker := command(filepath.Join(root, "bin/worker"), "--nats", nats, "--workflows", "examples/02-approval/workflows", "--park-after", "200ms", "--http", "off")
	s := &stage{
		T: t, page: "http://" + shown, gateway: "http://" + gateway, running: map[string]*exec.Cmd{},
		ready: map[string]string{"worker": "is ready", "another": "is ready", "gateway": "ready", "page": "is ready"},
		starts: map[string]func() *exec.Cmd{
			"worker": worker, "another": worker,
			"gateway": command(filepath.Join(root, "bin/gateway"), "--dev", "--nats", nats, "--listen", gateway, "--http", "off", "--origins", "http://"+shown, "--settle", "300ms"),
			"page":    command(page, "--listen", shown, "--nats", nats, "--gateway", "http://"+gateway, "--copilotkit", filepath.Join(root, "examples/12-frontend/copilotkit/dist")),
		},
	}
	t.Cleanup(func() {
		for name := range s.starts {
			s.kill(name)
		}
	})
	if withWorker {
		require.NoError(t, s.start("worker"))
	}
	require.NoError(t, s.start("gateway"))
	require.NoError(t, s.start("page"))
	waitForWorkflow(t, s.gateway, "Studio")
	s.settings = []string{"ONETURN_PAGE=" + s.page, "ONETURN_GATEWAY=" + s.gateway, "ONETURN_STAGE=" + s.serve()}
	return s
}
