package worker_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/catalog"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// workflowList reads the list of workflows as a gateway does.
func workflowList(t *testing.T, s *oneturntest.Server) *catalog.Workflows {
	t.Helper()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	list := catalog.NewWorkflows(js, space, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		list.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return list
}

func TestWorkflowsOfAWorkerAreKnownToOthersAlsoAfterItsEnd(t *testing.T) {
	t.Parallel()
	s := server(t)
	root := workflows(t, "description: Greets people.\n"+helloManifest, "def greet(name):\n    return name\n")
	w, err := oneturn.NewWorker(s.Connect(), oneturn.Config{Workflows: root, Watch: true, SoftStop: time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	list := workflowList(t, s)
	find := func(name string) (found catalog.Workflow) {
		require.Eventually(t, func() bool {
			found, err = list.Find(t.Context(), name)
			return err == nil
		}, 20*time.Second, 10*time.Millisecond, "%v", err)
		return found
	}
	require.Equal(t, catalog.Workflow{Name: "Hello", Description: "Greets people.", Agents: 1, Pools: []string{"default"}}, find("Hello"))
	write(t, root, "Added/oneturn.yaml", helloManifest)
	write(t, root, "Added/tools/hello.py", "def greet(name):\n    return name\n")
	require.Equal(t, "Added", find("Added").Name)
	cancel()
	require.NoError(t, <-ended)
	all, err := workflowList(t, s).List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
}

func TestWorkerOnAServerWithoutTheBucketOfWorkflowsRunsTurnsAndReportsItOnce(t *testing.T) {
	t.Parallel()
	s := server(t)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), "KV_ONETURN_WORKFLOWS")) // provisioned before there was one
	log := &lockedBuffer{}
	config := greeter()
	config.Logger = slog.New(slog.NewTextHandler(log, nil))
	w := start(t, s, config)
	const warning = "bucket ONETURN_WORKFLOWS is missing: turnctl provision makes it"
	require.Eventually(t, func() bool { return strings.Contains(log.String(), warning) }, 10*time.Second, 5*time.Millisecond)
	one := turn("t1", map[string]any{"name": "Ada"})
	publish(t, client(t, s), one)
	require.True(t, await(t, client(t, s), one.TurnID).Success)
	require.NoError(t, w.Ready())
	require.Never(t, func() bool { return strings.Count(log.String(), "ONETURN_WORKFLOWS") > 1 || w.Ready() != nil }, 4*time.Second, 100*time.Millisecond)
}
