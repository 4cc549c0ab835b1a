package embedded_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/embedded"
)

const twoAccounts = `accounts {
  ONETURN { jetstream: enabled, users: [{user: worker, password: worker}], exports: [{service: "in.acme.>", accounts: [ACME]}] }
  ACME { users: [{user: acme, password: acme}], imports: [{service: {account: ONETURN, subject: "in.acme.>"}}] }
}
`

func accountsFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "accounts.conf")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestAccountsOfAFileKeepTenantsApart(t *testing.T) {
	t.Parallel()
	srv := start(t, embedded.Options{Memory: true, Accounts: accountsFile(t, twoAccounts), Account: "ONETURN"})
	js := connect(t, srv)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "IN", Subjects: []string{"in.>", "journal.>"}})
	require.NoError(t, err)
	acme, err := nats.Connect(srv.URL(), nats.UserInfo("acme", "acme"))
	require.NoError(t, err)
	t.Cleanup(acme.Close)
	m, err := acme.Request("in.acme.x", nil, 5*time.Second)
	require.NoError(t, err)
	require.Contains(t, string(m.Data), `"stream":"IN"`)
	require.NoError(t, acme.PublishRequest("in.acme.x", "journal.x", nil))
	_, err = acme.Request("in.beta.x", nil, 5*time.Second)
	require.ErrorIs(t, err, nats.ErrNoResponders)
	_, err = nats.Connect(srv.URL())
	require.ErrorIs(t, err, nats.ErrAuthorization, "a connection needs a user")
	stream, err := js.Stream(t.Context(), "IN")
	require.NoError(t, err)
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"in.acme.x": 2}, info.State.Subjects)
}

func TestFileOfAccountsThatCannotServeIsNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"accounts {":           "accounts of",
		"accounts { ACME {} }": `has no account "ONETURN": make the file with`,
		"accounts { ONETURN { users: [{user: u, password: $NOT_SET_FOR_THIS_TEST}] } }":                                                                                  "variables without a value: NOT_SET_FOR_THIS_TEST: export them",
		"IN_FILE: x\naccounts { ONETURN { users: [{user: $B_UNSET, password: $A_UNSET}, {user: v, password: $IN_FILE, permissions: {publish: \"$JS.API.>\"}}] } } # $NO": "variables without a value: A_UNSET, B_UNSET: export them",
	} {
		_, err := embedded.Start(t.Context(), embedded.Options{Listen: "127.0.0.1:0", Memory: true, Accounts: accountsFile(t, text), Account: "ONETURN"})
		require.ErrorContains(t, err, want)
	}
	_, err := embedded.Start(t.Context(), embedded.Options{Listen: "127.0.0.1:0", Memory: true, Accounts: "x", Account: "ONETURN", Username: "u", Password: "p"})
	require.ErrorContains(t, err, "mutually exclusive")
}

// TestStoreOfAnotherAccountIsRefused: its journal would not be seen, and turns would run again.
func TestStoreOfAnotherAccountIsRefused(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "data")
	run := func(o embedded.Options) (jetstream.JetStream, func(), error) {
		o.Listen, o.Store = "127.0.0.1:0", store
		srv, err := embedded.Start(t.Context(), o)
		if err != nil {
			return nil, nil, err
		}
		nc, err := srv.Conn()
		require.NoError(t, err)
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		return js, func() {
			nc.Close()
			require.NoError(t, srv.Stop())
		}, nil
	}
	js, stop, err := run(embedded.Options{})
	require.NoError(t, err)
	_, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b"})
	require.NoError(t, err)
	stop()
	_, _, err = run(embedded.Options{Accounts: accountsFile(t, twoAccounts), Account: "ONETURN"})
	require.ErrorIs(t, err, embedded.ErrOtherAccount)
	js, stop, err = run(embedded.Options{})
	require.NoError(t, err)
	_, err = js.KeyValue(t.Context(), "b")
	require.NoError(t, err)
	stop()
}
