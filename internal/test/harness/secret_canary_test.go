package harness_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

func TestCanaryIsFoundWhereNoSecretMayBe(t *testing.T) {
	t.Parallel()
	c := harness.NewCanaries()
	secret := c.Of("password")
	require.Equal(t, []string{"password", "header"}, c.In("x"+secret+", "+c.Of("header")))
	require.Empty(t, harness.NewCanaries().In(secret), "of another run")

	f := &oneturntest.Facts{Journal: []idempotency.Record{{Key: subjects.TurnKey("app", "chat", "", "t1").Public("tool_call"), Data: []byte("{}")}}}
	f.Dead = []oneturntest.DeadLetter{{Header: nats.Header{"Authorization": {secret}, "Oneturn-Error": {"no chat"}}}}
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

func TestCanaryIsFoundInFilesHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	c, dir := harness.NewCanaries(), t.TempDir()
	secret := c.Of("form")
	for name, text := range map[string]string{
		"plain": "x" + secret, "hex": fmt.Sprintf("%x", secret), "base64": base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64-1": base64.RawURLEncoding.EncodeToString([]byte("u" + secret)), "base64-2": base64.StdEncoding.EncodeToString([]byte("us:" + secret + "!"))[1:],
		"base64-3": base64.StdEncoding.EncodeToString([]byte("u:" + secret)), "clean": harness.NewCanaries().Of("other"),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	found, err := c.Files(dir)
	require.NoError(t, err)
	require.Len(t, found, 6, "%v", found)
	require.NotContains(t, found, filepath.Join(dir, "clean"))
	_, err = c.Files(filepath.Join(dir, "nowhere"))
	require.Error(t, err)
}
