//go:build unix

package tickets_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	tickets "github.com/oneturn/oneturn/examples/07-test-your-tool"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

func TestMain(m *testing.M) {
	if oneturntest.RunRole(map[string]oneturntest.Role{"worker": worker}) {
		return
	}
	oneturntest.VerifyNoLeaks(m)
}

// worker runs in a separate process: this test binary, started again. Its tool records each run in a
// ledger, and the first run of a turn is killed after the effect, before the tool returns.
func worker(ctx context.Context) error {
	nc, err := nats.Connect(os.Getenv("TEST_URL"), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer nc.Close()
	ledger, err := oneturntest.OpenLedger(os.Getenv("TEST_LEDGER"))
	if err != nil {
		return err
	}
	defer ledger.Close()
	desk := tickets.Desk{Dir: os.Getenv("TEST_DESK")}
	open := func(ctx context.Context, in tickets.Ticket) (string, error) {
		call := tool.Info(ctx)
		if err := ledger.Enter(call); err != nil {
			return "", err
		}
		opened, err := desk.Open(ctx, in)
		if call.Epoch == 1 { // the ticket is open, and no response is stored
			return "", syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return opened, errors.Join(err, ledger.Exit(call))
	}
	w, err := oneturn.NewWorker(nc, oneturn.Config{Tools: []oneturn.Tool{tickets.Tool(open)}})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

func TestOneTicketIsOpenedThoughTheWorkerDiesAfterIt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := oneturntest.NewServer(t) // stops with the test
	server.Provision()
	ledger, desk := filepath.Join(t.TempDir(), "ledger"), t.TempDir()
	for range 2 { // the second one takes over when the first one dies
		oneturntest.StartProcess(t, "worker", "TEST_URL="+server.URL(), "TEST_LEDGER="+ledger, "TEST_DESK="+desk)
	}
	nc := server.Connect()
	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	require.NoError(t, err)
	response, err := client.Do(ctx, &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "app", Chat: "chat", Turn: "turn-1"}, Workflow: "Support", Agent: "TicketAgent", Model: "Ticket",
		Data: map[string]any{"title": "Printer on fire"},
	})
	require.NoError(t, err)
	require.Equal(t, "opened: Printer on fire", response.Payload)

	// The effect: one ticket. And the guarantees, checked with the durable facts of the run.
	open, err := os.ReadDir(desk)
	require.NoError(t, err)
	require.Len(t, open, 1)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	facts, err := oneturntest.AtRest(ctx, nc, space, ledger)
	require.NoError(t, err)
	require.Len(t, facts.Ledger, 3, "entered, entered again, left")
	facts.Accepted = []oneturntest.Accepted{{App: "app", Chat: "chat", Turn: "turn-1"}}
	require.Empty(t, oneturntest.Check(facts, nil))
}
