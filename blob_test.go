package oneturn_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
)

// large returns as many letters as its name requests.
func large(_ context.Context, in greeting) (string, error) {
	n, err := strconv.Atoi(in.Name)
	return strings.Repeat("é", n), err
}

func withBlobs(t *testing.T) (*oneturntest.Server, *oneturn.Client) {
	t.Helper()
	s := server(t)
	start(t, s, oneturn.Config{Tools: []oneturn.Tool{oneturn.NewTool("large", large, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting"})}})
	c, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{})
	require.NoError(t, err)
	return s, c
}

func blobOf(t *testing.T, c *oneturn.Client, letters int) events.Blob {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := c.Do(ctx, turn("t"+strconv.Itoa(letters), map[string]any{"name": strconv.Itoa(letters)}))
	require.NoError(t, err)
	require.True(t, r.Success, r.Content)
	b, ok := events.BlobOf(r.Payload)
	require.True(t, ok)
	return b
}

func TestBlobIsFetchedInPiecesWithoutRightsOnJetStream(t *testing.T) {
	t.Parallel()
	_, c := withBlobs(t)
	for _, letters := range []int{150_000, 256*1024 - 1, 256 * 1024, 700_000, 2_000_000} {
		b := blobOf(t, c, letters)
		data, err := c.Blob(t.Context(), oneturn.BlobID{App: "app", Blob: b})
		require.NoError(t, err)
		require.Equal(t, `"`+strings.Repeat("é", letters)+`"`, string(data))
	}
}

func TestBlobThatIsNotTheOneOfTheEventIsRefused(t *testing.T) {
	t.Parallel()
	_, c := withBlobs(t)
	b := blobOf(t, c, 700_000)
	for _, wrong := range []events.Blob{
		{Blob: b.Blob, SHA256: b.SHA256, Size: b.Size - 1},
		{Blob: b.Blob, SHA256: b.SHA256, Size: b.Size + 1},
		{Blob: b.Blob, SHA256: strings.Repeat("0", 64), Size: b.Size},
	} {
		_, err := c.Blob(t.Context(), oneturn.BlobID{App: "app", Blob: wrong})
		require.ErrorIs(t, err, oneturn.ErrBlob)
	}
}

// TestBlobsOfOtherTenantsAndOfWorkersAreNotServed: what is stored of another tenant, of a parked
// turn and of a dead letter is not served.
func TestBlobsOfOtherTenantsAndOfWorkersAreNotServed(t *testing.T) {
	t.Parallel()
	s, c := withBlobs(t)
	b := blobOf(t, c, 150_000)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	store, err := js.ObjectStore(t.Context(), "ONETURN_BLOBS")
	require.NoError(t, err)
	const hash = ".0123456789abcdef"
	names := []string{
		"beta.c.0-t.0.tool_response" + hash, "app.c.0-t.0.park" + hash, "app.c.0-t.0.step.1" + hash, "dead.12" + hash, "app.12" + hash,
		"e.app.c.0-t.0.tool_response" + hash, "app.beta.c.0-t.0.tool_response" + hash,
	}
	for _, name := range names {
		_, err = store.PutString(t.Context(), name, "private")
		require.NoError(t, err)
	}
	nc := s.Connect()
	ask := func(app, body string) (code, data string) {
		m, err := nc.Request("oneturn.api."+app+".blob", []byte(body), 5*time.Second)
		require.NoError(t, err)
		return m.Header.Get(micro.ErrorCodeHeader), string(m.Data)
	}
	for _, name := range append(names, "app.c.0-t.0.tool_response"+hash, strings.Replace(b.Blob, "app.", "App.", 1), ".", "*.c.0-t.0.tool_response"+hash, "app.>"+hash) {
		body, err := json.Marshal(api.BlobRequest{Blob: name})
		require.NoError(t, err)
		code, data := ask("app", string(body))
		require.Equal(t, "404", code, name)
		require.Empty(t, data)
	}
	code, _ := ask("beta", `{"blob":"`+b.Blob+`"}`)
	require.Equal(t, "404", code)
	for _, bad := range []string{``, `{}`, `[]`, `{"blob":1}`, `{"blob":"` + b.Blob + `","from":-1}`} {
		code, _ = ask("app", bad)
		require.Equal(t, "400", code, bad)
	}
	code, data := ask("app", `{"blob":"`+b.Blob+`","from":18446744073709551615}`)
	require.Empty(t, code+data)
}
