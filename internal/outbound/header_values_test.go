package outbound_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

func secret(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestSecretIsReadAgainWhenItsFileChanges(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("X-Key")) })
	file := secret(t, "first\r\n")
	o := local()
	o.Headers = map[string]target.Value{"X-Key": {File: file}}
	c := client(t, o)
	body, err := post(t, c, s.URL)
	require.NoError(t, err)
	require.Equal(t, "first", body)
	require.Equal(t, "it was [secret]", c.Redact("it was first"))
	require.NoError(t, os.WriteFile(file, []byte("second"), 0o600))
	body, err = post(t, c, s.URL)
	require.NoError(t, err)
	require.Equal(t, "second", body)
	require.Equal(t, "[secret] [secret]", c.Redact("first second"))
}

func TestSecretThatCannotBeSentIsAnErrorWithoutItsText(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct {
		file, want string
		retryable  bool
	}{
		{secret(t, ""), "is empty", true},
		{filepath.Join(t.TempDir(), "missing"), "cannot be read", true},
		{secret(t, strings.Repeat("CANARY", 20_000)), "more than 65536 bytes", true},
		{secret(t, "CANARY\nX-Evil: 1"), "line break", false},
		{t.TempDir(), "a folder, a pipe or a device", true},
		{os.DevNull, "a folder, a pipe or a device", true}, // as a pipe, which would be waited for
	} {
		o := local()
		o.Headers = map[string]target.Value{"Authorization": {File: c.file}}
		_, err := post(t, client(t, o), s.URL)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "CANARY")
		var file *target.FileError
		require.ErrorAs(t, err, &file)
		require.Equal(t, c.file, file.File)
		require.Equal(t, c.retryable, tools.IsRetryable(err))
	}
}

func TestManifestCannotForgeWhatTheWorkerSets(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Join(r.Header["Idempotency-Key"], ","))
	})
	o := local()
	o.Headers = map[string]target.Value{"idempotency-key": {Text: "forged"}}
	body, err := post(t, client(t, o), s.URL, "Idempotency-Key", "k")
	require.NoError(t, err)
	require.Equal(t, "k", body)
}
