package turntest_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/turntest"
)

func TestCanaryIsFoundWhereNoSecretMayBe(t *testing.T) {
	t.Parallel()
	c := turntest.NewCanaries()
	secret := c.Of("password")
	require.Equal(t, []string{"password", "header"}, c.In("x"+secret+", "+c.Of("header")))
	require.Empty(t, turntest.NewCanaries().In(secret), "of another run")

	f := good(t)
	f.Dead = []turntest.Letter{{Header: nats.Header{"Authorization": {secret}, "Oneturn-Error": {"no chat"}}}}
	require.Empty(t, c.Check(f, map[string]string{"log": "level=INFO"}), "a sender's own header is its own")
	require.Empty(t, c.Check(nil, nil))
	for where, damage := range map[string]func() map[string]string{
		"log":                                   func() map[string]string { return map[string]string{"log": "level=INFO " + secret} },
		"the headers of a record":               func() map[string]string { f.Journal[0].Meta.Trace = secret; return nil },
		"header Oneturn-Error of a dead letter": func() map[string]string { f.Dead[0].Header.Set("Oneturn-Error", secret); return nil },
	} {
		f.Journal[0].Meta.Trace = ""
		f.Dead[0].Header.Set("Oneturn-Error", "")
		found := c.Check(f, damage())
		require.Len(t, found, 1, where)
		require.Equal(t, "I9", found[0].Invariant)
		require.Contains(t, found[0].Text, "a canary of password is in "+where)
	}
}
