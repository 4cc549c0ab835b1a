package auth_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway/auth"
)

// tokenFile is a file of tokens, with its authenticator.
type tokenFile struct {
	*auth.StaticTokens

	path  string
	clock *clock
	log   lockedBuffer
}

func openTokens(tb testing.TB, text string) *tokenFile {
	tb.Helper()
	f := &tokenFile{path: filepath.Join(tb.TempDir(), "tokens.yaml"), clock: newClock()}
	f.write(tb, text)
	s, err := auth.OpenTokens(auth.StaticConfig{Path: f.path, Now: f.clock.now, Log: slog.New(slog.NewTextHandler(&f.log, nil))})
	require.NoError(tb, err)
	f.StaticTokens = s
	return f
}

func (f *tokenFile) write(tb testing.TB, text string) {
	tb.Helper()
	require.NoError(tb, os.WriteFile(f.path, []byte(text), 0o600))
}

func entry(token, rest string) string {
	return fmt.Sprintf("- {sha256: %s, app: acme, %s}\n", auth.HashToken(token), rest)
}

func TestStaticTokensAreWhatTheirFileStates(t *testing.T) {
	t.Parallel()
	user, service, last := auth.NewToken(), auth.NewToken(), auth.NewToken()
	f := openTokens(t, `
# comment
- sha256: `+auth.HashToken(user)+`
  app: acme
  user: ada
- sha256: `+strings.ToUpper(auth.HashToken(service))+`
  app: [acme, globex]
  service: backend
  roles: [operator]
  workflows: [Gate]
  chats: c1
  expires: 2026-12-02
- {sha256: "`+auth.HashToken(last)+`", app: "7", user: "yes", workflows: [], expires: 2026-12-01T13:00:00+01:00}
`)
	id, err := authenticate(t, f, user)
	require.NoError(t, err)
	require.Equal(t, []string{"acme"}, id.Apps)
	require.Equal(t, "ada", id.User)
	require.Nil(t, id.Workflows)
	require.Nil(t, id.Chats)
	require.Empty(t, id.Roles)
	require.Zero(t, id.Expires)

	id, err = authenticate(t, f, service)
	require.NoError(t, err)
	require.Equal(t, []string{"acme", "globex"}, id.Apps)
	require.Equal(t, "backend", id.User)
	require.Equal(t, []string{"Gate"}, id.Workflows)
	require.Equal(t, []string{"c1"}, id.Chats)
	require.True(t, id.Has(auth.RoleService))
	require.True(t, id.Has(auth.RoleOperator))
	require.Equal(t, time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC), id.Expires)

	_, err = authenticate(t, f, last)
	require.ErrorIs(t, err, auth.ErrTokenExpired, "at 12:00 UTC it has")
	for _, token := range []string{"x", auth.HashToken(user), user + "x", user[:len(user)-1], strings.ToUpper(user), "\x00"} {
		_, err = authenticate(t, f, token)
		require.ErrorIs(t, err, auth.ErrTokenInvalid)
	}
	_, err = authenticate(t, f, "")
	require.ErrorIs(t, err, auth.ErrTokenMissing)
	f.clock.advance(12 * time.Hour)
	_, err = authenticate(t, f, service)
	require.ErrorIs(t, err, auth.ErrTokenExpired)
	require.NotContains(t, f.log.String(), user)
}

func TestTokenFilesAreAlsoJSON(t *testing.T) {
	t.Parallel()
	f := openTokens(t, "[\n\t{\n\t\t\"sha256\": \""+auth.HashToken("t1")+"\",\n\t\t\"app\": [\"acme\"],\n\t\t\"user\": \"ada\"\n\t}\n]\n")
	_, err := authenticate(t, f, "t1")
	require.NoError(t, err)
}

func TestMistakesInAFileOfTokensHaveAFix(t *testing.T) {
	t.Parallel()
	hash := auth.HashToken("t1")
	for text, want := range map[string]string{
		"":          "tokens.yaml: the file is empty; write [] to revoke all tokens",
		"# nothing": "the file is empty",
		"[":         "neither YAML nor JSON",
		"a: b":      "tokens.yaml:1: the file is not a list; write a list",
		"- x":       "the entry is not a mapping",
		"- {sha256: " + hash + ", app: acme, usr: ada}":                                            `unknown key "usr"; did you mean user?`,
		"- {sha256: " + hash + ", app: acme, user: ada, rights: [all]}":                            `unknown key "rights"; use sha256, app`,
		"- {token: t1, app: acme, user: ada}":                                                      "the file must not contain tokens",
		"- {sha256: t1, app: acme, user: ada}":                                                     "sha256 is not a hash; write the 64 hex digits",
		"- {sha256: " + hash[:62] + ", app: acme, user: ada}":                                      "sha256 is not a hash",
		"- {sha256: [" + hash + "], app: acme, user: ada}":                                         "sha256 is not a hash",
		"- {sha256: " + strings.Repeat("0", 64) + ", app: acme, user: ada}":                        "sha256 has only zeros",
		"- {app: acme, user: ada}":                                                                 "sha256 is missing",
		"- {sha256: " + hash + ", user: ada}":                                                      "app is missing",
		"- {sha256: " + hash + ", app: acme}":                                                      "needs one of user and service",
		"- {sha256: " + hash + ", app: acme, user: ada, service: x}":                               "needs one of user and service",
		"- {sha256: " + hash + ", app: [], user: ada}":                                             "app is empty; name a tenant",
		"- {sha256: " + hash + ", app: , user: ada}":                                               "app is not a name",
		"- {sha256: " + hash + ", app: '', user: ada}":                                             "app is empty",
		"- {sha256: " + hash + ", app: acme, user: ada, user: bob}":                                `duplicate key "user"; keep one of them`,
		"- {sha256: " + hash + ", app: acme, user: [ada]}":                                         "user is not a name",
		"- {sha256: " + hash + ", app: acme, user: ada, workflows: }":                              "workflows is not a name",
		"- {sha256: " + hash + ", app: acme, user: ada, workflows: {a: b}}":                        "workflows is not a name",
		"- {sha256: " + hash + ", app: acme, user: ada, roles: [root]}":                            `unknown role "root"; use operator or service`,
		"- {sha256: " + hash + ", app: acme, user: ada, expires: soon}":                            `expires is not a time: "soon"; write for example`,
		"- {sha256: " + hash + ", app: acme, user: ada, expires: 2026-13-01}":                      "expires is not a time",
		"- {sha256: " + hash + ", app: acme, user: ada, expires: }":                                "expires is not a time",
		"- &a {sha256: " + hash + ", app: acme, user: ada}\n- *a":                                  "the entry is not a mapping",
		"- {sha256: " + hash + ", app: acme, user: &a ada, chats: *a}":                             "chats is not a name",
		"- {sha256: " + hash + ", app: a, user: ada}\n- {sha256: " + hash + ", app: b, user: ada}": "tokens.yaml:2: the token is the same as in line 1",
		"- {sha256: " + hash + ", app: a, user: ada}\n---\n- x":                                    "more than one document",
		strings.Repeat("- {}\n", 10_001):                                                           "10001 tokens: the limit is 10000",
		strings.Repeat(" ", 4<<20+1):                                                               "more than 4194304 bytes",
	} {
		path := filepath.Join(t.TempDir(), "tokens.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := auth.OpenTokens(auth.StaticConfig{Path: path})
		require.ErrorContains(t, err, want, "%.200s", text)
		require.NotContains(t, err.Error(), "t1,")
	}
	_, err := auth.OpenTokens(auth.StaticConfig{Path: filepath.Join(t.TempDir(), "none")})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAFileOfTokensIsReadAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	f := openTokens(t, entry("t1", "user: ada")+entry("t2", "user: bob")+entry("t3", "user: eve"))
	kept, err := authenticate(t, f, "t1")
	require.NoError(t, err)
	removed, err := authenticate(t, f, "t2")
	require.NoError(t, err)
	changed, err := authenticate(t, f, "t3")
	require.NoError(t, err)

	onKept, onRemoved, onChanged := connect(t, kept), connect(t, removed), connect(t, changed)
	f.write(t, entry("t3", "user: eve, workflows: [Gate]")+entry("t4", "user: dan")+entry("t1", "user: ada"))
	_, err = authenticate(t, f, "t2")
	require.NoError(t, err, "the file is read once a second")
	f.clock.advance(time.Second)
	_, err = authenticate(t, f, "t2")
	require.ErrorIs(t, err, auth.ErrTokenInvalid)
	_, err = authenticate(t, f, "t4")
	require.NoError(t, err)

	requireRevoked(t, onRemoved)
	requireRevoked(t, onChanged) // it allows less, or more
	require.NoError(t, onKept.Err())

	f.write(t, "[]")
	require.NoError(t, f.Reload(), "without a pause")
	requireRevoked(t, onKept)
	<-kept.Revoked()
	_, err = authenticate(t, f, "t1")
	require.ErrorIs(t, err, auth.ErrTokenInvalid)
}

// connect returns the context of a connection, which does not end by the real clock.
func connect(t *testing.T, id *auth.Identity) context.Context {
	t.Helper()
	id.Expires = time.Time{}
	ctx, cancel := id.Context(t.Context())
	t.Cleanup(cancel)
	return ctx
}

func requireRevoked(t *testing.T, ctx context.Context) { //nolint:revive // t is first everywhere
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		require.Fail(t, "the connection is open")
	}
	require.ErrorIs(t, context.Cause(ctx), auth.ErrTokenInvalid)
}

func TestConnectionsOfARemovedTokenEndWhileNoOtherTokenComes(t *testing.T) {
	t.Parallel()
	f := openTokens(t, entry("t1", "user: ada")+entry("t2", "user: bob"))
	removed, err := authenticate(t, f, "t1")
	require.NoError(t, err)
	kept, err := authenticate(t, f, "t2")
	require.NoError(t, err)
	for range 2 { // also after a time without connections
		first, end := removed.Context(t.Context())
		end()
		end()
		require.ErrorIs(t, first.Err(), context.Canceled)
	}
	onRemoved, onKept := connect(t, removed), connect(t, kept)
	f.write(t, entry("t2", "user: bob"))
	f.clock.advance(time.Second)
	requireRevoked(t, onRemoved)
	require.NoError(t, onKept.Err())
}

func TestAFileOfTokensThatWasNeverReadIsReportedByItsErrorAlone(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	_, err := auth.OpenTokens(auth.StaticConfig{Path: filepath.Join(t.TempDir(), "none"), Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.Error(t, err)
	require.Empty(t, log.String(), "no token was valid before")
}

func TestAMistakeInAFileOfTokensChangesNothing(t *testing.T) {
	t.Parallel()
	f := openTokens(t, entry("t1", "user: ada"))
	id, err := authenticate(t, f, "t1")
	require.NoError(t, err)
	for _, breakIt := range []func(){
		func() { f.write(t, entry("t1", "user: ada")+entry("t2", "usr: bob")) },
		func() { f.write(t, "") },
		func() { require.NoError(t, os.Remove(f.path)) },
		func() { require.NoError(t, os.Mkdir(f.path, 0o700)) },
	} {
		breakIt()
		for range 3 {
			f.clock.advance(time.Second)
			_, err = authenticate(t, f, "t1")
			require.NoError(t, err)
		}
		require.Error(t, f.Reload())
	}
	require.NoError(t, connect(t, id).Err())
	require.Equal(t, 8, strings.Count(f.log.String(), "tokens cannot be read"), "each mistake once, and each Reload: %s", f.log.String())

	require.NoError(t, os.Remove(f.path))
	f.write(t, entry("t2", "user: bob"))
	f.clock.advance(time.Second)
	_, err = authenticate(t, f, "t2")
	require.NoError(t, err)

	for _, text := range []string{"", entry("t2", "user: bob"), ""} {
		f.write(t, text)
		f.clock.advance(time.Second)
		_, err = authenticate(t, f, "t2")
		require.NoError(t, err)
	}
	require.Equal(t, 10, strings.Count(f.log.String(), "tokens cannot be read"), "a mistake that was corrected and made again: %s", f.log.String())
}

func TestTokensAreCheckedWhileTheirFileChanges(t *testing.T) {
	t.Parallel()
	f := openTokens(t, entry("t1", "user: ada"))
	done := make(chan struct{})
	var checks sync.WaitGroup
	for range 4 {
		checks.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				f.clock.advance(time.Second)
				id, err := f.Authenticate(context.Background(), auth.Request{Token: "t1"})
				if err != nil || id.User != "ada" {
					panic(fmt.Sprint(id, err))
				}
				id.Apps[0] = "changed by its user"
			}
		})
	}
	for i := range 50 {
		next := filepath.Join(t.TempDir(), "next")
		require.NoError(t, os.WriteFile(next, []byte(entry("t1", "user: ada")+entry("t"+strconv.Itoa(i+2), "user: bob")), 0o600))
		require.NoError(t, os.Rename(next, f.path))
		require.NoError(t, f.Reload())
	}
	close(done)
	checks.Wait()
	id, err := authenticate(t, f, "t1")
	require.NoError(t, err)
	require.Equal(t, []string{"acme"}, id.Apps)
}

func TestNewTokensAreDifferentAndFitInHeadersAndSubprotocols(t *testing.T) {
	t.Parallel()
	a, b := auth.NewToken(), auth.NewToken()
	require.NotEqual(t, a, b)
	require.Regexp(t, `^oneturn_[A-Z2-7]{26,}$`, a)
	require.Equal(t, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", auth.HashToken("abc"))
}
