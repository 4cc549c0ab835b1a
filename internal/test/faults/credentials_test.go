package faults_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/provision"
)

// keyring signs the users of a server that trusts its operator.
type keyring struct {
	*testing.T

	server            *server.Server
	operator, account nkeys.KeyPair
	claims            *jwt.AccountClaims
	file              string // credentials of the worker
}

func newKeyring(t *testing.T) *keyring {
	t.Helper()
	k := &keyring{T: t, file: filepath.Join(t.TempDir(), "worker.creds")}
	var err error
	k.operator, err = nkeys.CreateOperator()
	require.NoError(t, err)
	k.account, err = nkeys.CreateAccount()
	require.NoError(t, err)
	operator, account := public(t, k.operator), public(t, k.account)
	k.claims = jwt.NewAccountClaims(account)
	k.claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	resolver := &server.MemAccResolver{}
	require.NoError(t, resolver.Store(account, k.encode()))
	system, err := nkeys.CreateAccount()
	require.NoError(t, err)
	systemClaims, err := jwt.NewAccountClaims(public(t, system)).Encode(k.operator)
	require.NoError(t, err)
	require.NoError(t, resolver.Store(public(t, system), systemClaims))
	k.server, err = server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(),
		TrustedKeys: []string{operator}, AccountResolver: resolver, SystemAccount: public(t, system),
	})
	require.NoError(t, err)
	k.server.Start()
	t.Cleanup(func() {
		k.server.Shutdown()
		k.server.WaitForShutdown()
	})
	require.True(t, k.server.ReadyForConnections(10*time.Second))
	return k
}

func public(t *testing.T, pair nkeys.KeyPair) string {
	t.Helper()
	key, err := pair.PublicKey()
	require.NoError(t, err)
	return key
}

func (k *keyring) encode() string {
	k.Helper()
	token, err := k.claims.Encode(k.operator)
	require.NoError(k, err)
	return token
}

// issue writes the credentials of a new user into a file, and returns its key.
func (k *keyring) issue(file string, life time.Duration) string {
	k.Helper()
	pair, err := nkeys.CreateUser()
	require.NoError(k, err)
	user := public(k.T, pair)
	claims := jwt.NewUserClaims(user)
	if life > 0 {
		claims.Expires = time.Now().Add(life).Unix()
	}
	token, err := claims.Encode(k.account)
	require.NoError(k, err)
	seed, err := pair.Seed()
	require.NoError(k, err)
	creds, err := jwt.FormatUserConfig(token, seed)
	require.NoError(k, err)
	next := file + ".new"
	require.NoError(k, os.WriteFile(next, creds, 0o600))
	require.NoError(k, os.Rename(next, file)) // as a rotation does: never half a file
	return user
}

// revoke takes the right to connect from a user.
func (k *keyring) revoke(user string) {
	k.Helper()
	k.claims.Revoke(user)
	account, err := k.server.LookupAccount(public(k.T, k.account))
	require.NoError(k, err)
	k.server.UpdateAccountClaims(account, k.claims)
}

// worker connects as the command worker does and runs. The error is the reason of its end.
func (k *keyring) worker(r *rig) (w *oneturn.Worker, ended <-chan error, reconnected <-chan struct{}) {
	k.Helper()
	again := make(chan struct{}, 16)
	nc, err := config.Connect(config.NATS{URL: config.URL(k.server.ClientURL()), Creds: k.file}, "worker", slog.New(slog.DiscardHandler),
		nats.ReconnectHandler(func(*nats.Conn) { again <- struct{}{} }))
	require.NoError(k, err)
	w, err = oneturn.NewWorker(nc, oneturn.Config{Tools: []oneturn.Tool{r.tool("Work", "unsafe")}})
	require.NoError(k, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(k.Context()))
	done, reported := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(done)
		reported <- w.Run(ctx)
	}()
	k.Cleanup(func() {
		cancel()
		<-done
		nc.Close()
	})
	require.Eventually(k, func() bool { return w.Ready() == nil }, 20*time.Second, 5*time.Millisecond)
	return w, reported, again
}

// publisher is a client with separate credentials, on a provisioned server.
func (k *keyring) publisher() *oneturn.Client {
	k.Helper()
	file := filepath.Join(k.TempDir(), "publisher.creds")
	k.issue(file, 0)
	nc, err := nats.Connect(k.server.ClientURL(), nats.UserCredentials(file))
	require.NoError(k, err)
	k.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(k, err)
	plan, err := provision.New(provision.Options{AckWait: time.Second})
	require.NoError(k, err)
	_, err = provision.Apply(k.Context(), js, plan)
	require.NoError(k, err)
	c, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	require.NoError(k, err)
	return c
}

// do runs turns through the worker, so that one whose connection is new is known to work.
func (k *keyring) do(c *oneturn.Client, key string) {
	k.Helper()
	for i := range 5 {
		ctx, cancel := context.WithTimeout(k.Context(), 20*time.Second)
		response, err := c.Do(ctx, turn("Work", "chat", key+strconv.Itoa(i), "unsafe", 1))
		cancel()
		require.NoError(k, err)
		require.True(k, response.Success, fmt.Sprint(response))
	}
}

// F24: the credentials of a worker expire while it runs. The file holds new ones by then: it reconnects with them and continues.
func TestWorkerContinuesWithRenewedCredentialsWhenTheOldOnesExpire(t *testing.T) {
	t.Parallel()
	k, r := newKeyring(t), newRig(t)
	c := k.publisher()
	k.issue(k.file, 3*time.Second)
	w, ended, reconnected := k.worker(r)
	k.do(c, "before")
	k.issue(k.file, 0)
	select {
	case <-reconnected:
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		require.Fail(t, "the credentials do not expire")
	}
	k.do(c, "after")
	require.NoError(t, w.Ready())
}

// F24: the credentials of a worker are revoked and not renewed. The server refuses them
// twice, which is the end of a connection: the worker ends with an error that reports it.
func TestWorkerEndsWithAnErrorWhenItsCredentialsAreRevoked(t *testing.T) {
	t.Parallel()
	k, r := newKeyring(t), newRig(t)
	c := k.publisher()
	user := k.issue(k.file, 0)
	w, ended, _ := k.worker(r)
	k.do(c, "before")
	k.revoke(user)
	select {
	case err := <-ended:
		require.ErrorIs(t, err, inbox.ErrClosed)
		require.ErrorContains(t, err, "renew its credentials")
	case <-time.After(30 * time.Second):
		require.Fail(t, "the worker continues without a right to")
	}
	require.Error(t, w.Ready())
	// Its supervisor starts it again, with new credentials: what waited is done.
	k.issue(k.file, 0)
	k.worker(r)
	k.do(c, "after")
}
