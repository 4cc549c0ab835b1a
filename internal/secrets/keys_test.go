package secrets_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/secrets"
)

// ring returns a ring of the given lines.
func ring(t *testing.T, lines ...string) *secrets.Keys {
	t.Helper()
	keys, err := secrets.Parse([]byte(strings.Join(lines, "\n")))
	require.NoError(t, err)
	return keys
}

func TestBoxOpensForItsNameWithAnyKeyOfTheRing(t *testing.T) {
	t.Parallel()
	older, newer := secrets.NewKey(), secrets.NewKey()
	box, err := ring(t, older).Seal("a", []byte("answer"))
	require.NoError(t, err)
	require.True(t, secrets.Sealed(box))
	require.NotContains(t, string(box), "answer")
	both := ring(t, "# newest first", newer, "", "  "+older+"\r")
	data, err := both.Open("a", box)
	require.NoError(t, err)
	require.Equal(t, "answer", string(data))
	again, err := both.Seal("a", []byte("answer"))
	require.NoError(t, err)
	require.NotEqual(t, box, again)
	_, err = ring(t, older).Open("a", again)
	require.ErrorIs(t, err, events.ErrStateCorrupt)
	require.ErrorContains(t, err, "--secret-keys")
}

func TestBoxThatWasTouchedOrMovedDoesNotOpen(t *testing.T) {
	t.Parallel()
	keys := ring(t, secrets.NewKey())
	box, err := keys.Seal("a", []byte("answer"))
	require.NoError(t, err)
	_, err = keys.Open("b", box)
	require.ErrorIs(t, err, events.ErrStateCorrupt)
	for i := range box {
		touched := append([]byte(nil), box...)
		touched[i] ^= 1
		_, err = keys.Open("a", touched)
		require.ErrorIs(t, err, events.ErrStateCorrupt, "byte %d", i)
		_, err = keys.Open("a", box[:i])
		require.ErrorIs(t, err, events.ErrStateCorrupt, "cut at %d", i)
	}
	for _, json := range []string{"", "{}", `"x"`, "[1,2,3,4,5,6]", "123456789"} {
		require.False(t, secrets.Sealed([]byte(json)))
	}
}

func TestWithoutKeysNothingIsSealedAndTheErrorNameTheFix(t *testing.T) {
	t.Parallel()
	var none *secrets.Keys
	_, err := none.Seal("a", nil)
	require.ErrorContains(t, err, "turnctl secret-key")
	require.ErrorContains(t, err, "--secret-keys")
	require.ErrorContains(t, none.Ready(), "--secret-keys")
	box, err := ring(t, secrets.NewKey()).Seal("a", []byte("x"))
	require.NoError(t, err)
	_, err = none.Open("a", box)
	require.ErrorIs(t, err, events.ErrStateCorrupt)
	require.ErrorContains(t, err, "--secret-keys")
}

func TestPrintedKeysRevealNothing(t *testing.T) {
	t.Parallel()
	keys := ring(t, secrets.NewKey())
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		require.Equal(t, "1 secret keys", fmt.Sprintf(verb, keys))
	}
}

func TestBadKeyFilesAreRefusedWithTheFixAndWithoutTheirText(t *testing.T) {
	t.Parallel()
	one := secrets.NewKey()
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":   {"# only a comment\n", "turnctl secret-key"},
		"no base64": {one + "\nCANARY!\n", "line 2"},
		"short":     {"Q0FOQVJZ\n", "line 1"},
		"twice":     {one + "\n" + one, "line 2: duplicate key"},
		"too many":  {strings.Join(many(101), "\n"), "more than 100 keys"},
	} {
		_, err := secrets.Parse([]byte(tc.text))
		require.ErrorContains(t, err, tc.want, name)
		require.NotContains(t, err.Error(), "CANARY")
	}
}

func many(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = secrets.NewKey()
	}
	return lines
}

func TestKeyFileIsMadeOnceForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret-keys")
	text, err := secrets.LoadOrMake(file)
	require.NoError(t, err)
	keys, err := secrets.Parse(text)
	require.NoError(t, err)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	box, err := keys.Seal("a", []byte("x"))
	require.NoError(t, err)
	text, err = secrets.LoadOrMake(file)
	require.NoError(t, err)
	again, err := secrets.Parse(text)
	require.NoError(t, err)
	_, err = again.Open("a", box)
	require.NoError(t, err)
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestKeyFileThatOthersMayReadIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(file, []byte(secrets.NewKey()), 0o600))
	require.NoError(t, os.Chmod(file, 0o640))
	_, err := secrets.Load(file)
	require.ErrorContains(t, err, "chmod 600 "+file)
	_, err = secrets.Load(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, make([]byte, 1<<17), 0o600))
	_, err = secrets.Load(large)
	require.ErrorContains(t, err, "not a key file")
	_, err = secrets.LoadOrMake(filepath.Join(t.TempDir(), "no", "folder", "keys"))
	require.Error(t, err)
}
