package denied_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/internal/denied"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ExampleDenials() {
	var d denied.Denials // after d.Watch(nc, "oneturn"), it remembers what the server denies nc
	fmt.Println(d.Err(time.Minute))
	// Output: <nil>
}

// limited is a connection that may publish to ok.> only.
func limited(t *testing.T, opts ...nats.Option) *nats.Conn {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		Users: []*server.User{{Username: "u", Password: "p", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{"ok.>"}}, Subscribe: &server.SubjectPermission{Allow: []string{"ok.>"}},
		}}},
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	require.True(t, s.ReadyForConnections(10*time.Second))
	nc, err := nats.Connect(s.ClientURL(), append(opts, nats.UserInfo("u", "p"))...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// recent returns the rights that the error of a minute names.
func recent(d *denied.Denials) []string {
	err := d.Err(time.Minute)
	if err == nil {
		return nil
	}
	rights, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "the server denies this user to "), ": ")
	return strings.Split(rights, ", to ")
}

func TestDenialsHaveTheNamesOfTheirSubjectsAndAreForgottenAgain(t *testing.T) {
	t.Parallel()
	heard := make(chan error, 10)
	nc := limited(t, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { heard <- err }))
	var d denied.Denials
	stop := d.Watch(nc, "ours")
	var other denied.Denials
	defer other.Watch(nc, "ours")()
	for _, subject := range []string{"ours.x", "$KV.B.k", "ok.x", "_INBOX.other", "theirs.x"} { // the last two: answers to a requester
		require.NoError(t, nc.Publish(subject, nil))
	}
	_, err := nc.SubscribeSync("ours.events.>")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	require.Eventually(t, func() bool { return len(heard) == 5 }, 10*time.Second, time.Millisecond, "the error handler of the connection is still called")
	require.Equal(t, []string{"publish to $KV.B.k", "publish to ours.x", "subscribe to ours.events.>"}, recent(&d))
	require.ErrorContains(t, d.Err(time.Minute), "denies this user to publish to $KV.B.k, to publish to ours.x, to subscribe to ours.events.>")

	cause := errors.New("timeout")
	require.ErrorIs(t, d.Explain(cause), cause)
	require.ErrorContains(t, d.Explain(cause), "timeout; the server denies")
	require.NoError(t, d.Explain(nil))
	require.NoError(t, d.Err(0))
	require.Equal(t, cause, d.Explain(cause))

	stop()
	require.NoError(t, nc.Publish("ours.x", nil))
	require.NoError(t, nc.Flush())
	require.Eventually(t, func() bool { return len(heard) == 6 }, 10*time.Second, time.Millisecond)
	require.NoError(t, d.Err(time.Minute))
	require.Len(t, recent(&other), 3, "a second one that watches still does")
	require.NoError(t, nc.Publish("ours.y", nil))
	require.NoError(t, nc.Flush())
	require.Eventually(t, func() bool { return len(recent(&other)) == 4 }, 10*time.Second, time.Millisecond)
}

func TestDenialOfWhatIsNotNeededIsForgotten(t *testing.T) {
	t.Parallel()
	nc := limited(t)
	var d denied.Denials
	defer d.Watch(nc, "ours", "$KV.B.", "ours.list")()
	for _, subject := range []string{"$KV.B.k", "ours.list.x", "ours.needed"} {
		require.NoError(t, nc.Publish(subject, nil))
	}
	require.NoError(t, nc.Flush())
	require.Eventually(t, func() bool { return len(recent(&d)) > 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, []string{"publish to ours.needed"}, recent(&d))
}

func TestDenialsAreBounded(t *testing.T) {
	t.Parallel()
	nc := limited(t)
	var d denied.Denials
	d.Watch(nc, "ours")
	for i := range 100 {
		require.NoError(t, nc.Publish(fmt.Sprint("ours.", i), nil))
	}
	require.NoError(t, nc.Flush())
	require.Eventually(t, func() bool { return len(recent(&d)) == 16 }, 10*time.Second, time.Millisecond)
}

func TestDenialOfASubscriptionIsRecognized(t *testing.T) {
	t.Parallel()
	heard := make(chan error, 2)
	nc := limited(t, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { heard <- err }))
	_, err := nc.QueueSubscribeSync("ours.>", "q")
	require.NoError(t, err)
	require.NoError(t, nc.Publish("ours.x", nil))
	require.NoError(t, nc.Flush())
	first := <-heard
	require.True(t, denied.Subscription(first, "ours.>"))
	require.False(t, denied.Subscription(first, "ours.x"))
	require.False(t, denied.Subscription(<-heard, "ours.x"), "it is the denial to publish")
	require.False(t, denied.Subscription(errors.New("other"), "ours.>"))
}
