//go:build unix

package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// StepDown has the leader of a stream give its place to another server, or the leader of a consumer of
// the stream if one is named.
func (c *Cluster) StepDown(stream, consumer string) {
	c.t.Helper()
	subject := "$JS.API.STREAM.LEADER.STEPDOWN." + stream
	if consumer != "" {
		subject = "$JS.API.CONSUMER.LEADER.STEPDOWN." + stream + "." + consumer
	}
	c.insist(c.nc, subject, nil)
}

// StepDownMeta has the leader of the cluster itself give its place to another server.
func (c *Cluster) StepDownMeta() {
	c.t.Helper()
	c.insist(c.system(), "$JS.API.META.LEADER.STEPDOWN", nil)
}

// Remove stops a server and takes it out of the cluster for good: the others no longer count it.
func (c *Cluster) Remove(n *Node) {
	c.t.Helper()
	n.Stop()
	c.insist(c.system(), "$JS.API.SERVER.REMOVE", map[string]string{"peer": n.config.Name})
}

// Return starts a server that was removed, without its store and under another name, because the
// others take none with the old one back for minutes. The streams, and their consumers, get their
// replicas on it again.
func (c *Cluster) Return(n *Node) {
	c.t.Helper()
	require.NoError(c.t, os.RemoveAll(n.config.Store))
	n.config.Name += "-again"
	n.Start()
	c.WaitReady()
	js, err := jetstream.New(c.nc, jetstream.WithDefaultTimeout(5*time.Second))
	require.NoError(c.t, err)
	var streams []string
	for name := range js.ListStreams(c.t.Context()).Info() {
		streams = append(streams, name.Config.Name)
	}
	for _, name := range streams {
		for _, replicas := range []int{len(c.nodes) - 1, len(c.nodes)} {
			require.Eventually(c.t, func() bool {
				err = replicate(c.t.Context(), js, name, replicas)
				return err == nil
			}, clusterStart, 200*time.Millisecond, "stream %s: %d replicas: the last error is in the test's log", name, replicas)
			require.NoError(c.t, err)
		}
	}
}

func replicate(ctx context.Context, js jetstream.JetStream, stream string, replicas int) error {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("stream %s: %w", stream, err)
	}
	config := s.CachedInfo().Config
	config.Replicas = replicas
	if _, err := js.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("stream %s with %d replicas: %w", stream, replicas, err)
	}
	return nil
}

// system returns a connection that may remove servers.
func (c *Cluster) system() *nats.Conn {
	c.t.Helper()
	return c.Connect(nats.UserInfo(systemUser, systemUser))
}

// insist repeats a request of the JetStream API until it succeeds.
func (c *Cluster) insist(nc *nats.Conn, subject string, request any) {
	c.t.Helper()
	var body []byte
	var err error
	if request != nil {
		body, err = json.Marshal(request)
		require.NoError(c.t, err)
	}
	require.Eventually(c.t, func() bool {
		err = ask(nc, subject, body)
		return err == nil
	}, clusterStart, 200*time.Millisecond, "%s: the last error is in the test's log", subject)
	require.NoError(c.t, err)
}

func ask(nc *nats.Conn, subject string, body []byte) error {
	m, err := nc.Request(subject, body, 2*time.Second)
	if err != nil {
		return fmt.Errorf("%s: %w", subject, err)
	}
	var r struct {
		Success bool `json:"success"`
		Error   *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	switch err := json.Unmarshal(m.Data, &r); {
	case err != nil:
		return fmt.Errorf("%s: %w", subject, err)
	case r.Error != nil:
		return fmt.Errorf("%s: %w", subject, errors.New(r.Error.Description))
	}
	return nil
}
