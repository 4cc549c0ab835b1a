package subjects_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/subjects"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ExampleToken() {
	fmt.Println(subjects.Token("chat_1"))
	fmt.Println(subjects.Token("a.b *"))
	fmt.Println(subjects.Token(""))
	fmt.Println(subjects.TurnKey("default", "chat_1", "", "turn-001").Public("tool_call"))
	// Output:
	// chat_1
	// a=2Eb=20=2A
	// -
	// e.default.chat_1.0-turn-001.0.tool_call
}

var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9_=-]{1,64}$`)

func TestTokenIsAlwaysOnePlainTokenAndRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-=*>. \x00a-z:]{0,90}`)).Draw(t, "id")
		token := subjects.Token(id)
		require.Regexp(t, tokenPattern, token)
		back, hashed, err := subjects.Untoken(token)
		require.NoError(t, err)
		if hashed {
			require.Greater(t, len(id), 64/3)
			return
		}
		require.Equal(t, id, back)
	})
}

func TestTokensOfDifferentIDsDiffer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.StringMatching(`[-=2Da.0-9]{0,6}`)
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		c, d := gen.Draw(t, "c"), gen.Draw(t, "d")
		if a != b {
			require.NotEqual(t, subjects.Token(a), subjects.Token(b))
		}
		if a != b || c != d {
			require.NotEqual(t, subjects.TurnToken(a, c), subjects.TurnToken(b, d))
		}
		require.NotEqual(t, subjects.TurnToken(a, c), subjects.ReusedTurnToken(b, d, "00ff"))
	})
}

func TestUntokenRefusesWhatTokenNeverMakes(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "*", ">", "a.b", "=2", "=2d", "=61", "=GG", "==short", strings.Repeat("a", 65), "a b", "\x00"} {
		_, _, err := subjects.Untoken(token)
		require.Error(t, err, token)
	}
}

func TestInboundSubjectRoundTripsAndStaysShort(t *testing.T) {
	t.Parallel()
	space, err := subjects.New("acme.oneturn")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		app, wf, chat := rapid.String().Draw(t, "app"), rapid.String().Draw(t, "wf"), rapid.String().Draw(t, "chat")
		subject := space.In("default", "structured_output_ready", app, wf, chat)
		require.LessOrEqual(t, len(subject), 512)
		in, ok := space.ParseIn(subject)
		require.True(t, ok)
		require.Equal(t, subjects.Inbound{
			Pool: "default", Kind: "structured_output_ready",
			App: subjects.Token(app), Workflow: subjects.Token(wf), Chat: subjects.Token(chat),
		}, in)
	})
}

func TestParseInRefusesOtherSubjects(t *testing.T) {
	t.Parallel()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	for _, s := range []string{"", "oneturn.in", "oneturn.in.p.k.a.w", "oneturn.in.p.k.a.w.c.x", "other.in.p.k.a.w.c", "oneturn.in.p..a.w.c", "oneturn.in.p.k.a.w."} {
		_, ok := space.ParseIn(s)
		require.False(t, ok, s)
	}
}

func TestJournalKeysRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := subjects.TurnKey(rapid.String().Draw(t, "app"), rapid.String().Draw(t, "chat"), rapid.String().Draw(t, "run"), rapid.String().Draw(t, "turn"))
		for _, r := range []subjects.Record{
			{Key: k, Kind: "tool_call"},
			{Key: k, Kind: "takeover", ID: "2", Private: true},
		} {
			key := k.Public(r.Kind)
			if r.Private {
				key = k.Private(r.Kind, r.ID)
			}
			require.LessOrEqual(t, len(key), 512)
			back, ok := subjects.ParseKey(key)
			require.True(t, ok)
			require.Equal(t, r, back)
		}
	})
}

func TestPrefixGivesEveryName(t *testing.T) {
	t.Parallel()
	space, err := subjects.New("acme.oneturn")
	require.NoError(t, err)
	require.Equal(t, "ACME_ONETURN_IN", space.InStream())
	require.Equal(t, "KV_ACME_ONETURN_TURNS", space.TurnsStream())
	require.Equal(t, "acme.oneturn.events.*.*.*.*.cancel", space.EventsOfKind("cancel"))
	require.Equal(t, "acme.oneturn.api.*.turn", space.APIForAll("turn"))
	require.Equal(t, "acme.oneturn.api.=2A.turn", space.API("*", "turn"))
	key, ok := space.JournalKeyOf(space.JournalSubject("e.a.b.c.0.tool_call"))
	require.True(t, ok)
	require.Equal(t, "e.a.b.c.0.tool_call", key)
	for _, bad := range []string{"", "a b", "a..b", ".a", "a.", "a.*", ">", strings.Repeat("a", 65)} {
		_, err := subjects.New(bad)
		require.Error(t, err, bad)
	}
	for _, bad := range []string{"", "-", "a.b", "*", strings.Repeat("a", 33)} {
		require.Error(t, subjects.CheckPool(bad), bad)
	}
	require.NoError(t, subjects.CheckPool("gpu-1"))
}

func FuzzToken(f *testing.F) {
	for _, s := range []string{"", "-", "chat_1", "a.b", "\xff\x00", strings.Repeat("é", 40)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		token := subjects.Token(id)
		if !tokenPattern.MatchString(token) {
			t.Fatalf("Token(%q) = %q is not a plain token", id, token)
		}
		if back, hashed, err := subjects.Untoken(token); err != nil || !hashed && back != id {
			t.Fatalf("Untoken(%q) = %q, %v, %v", token, back, hashed, err)
		}
		// Whatever Untoken accepts, Token makes again.
		if back, hashed, err := subjects.Untoken(id); err == nil && !hashed && subjects.Token(back) != id {
			t.Fatalf("Untoken accepts %q, which Token does not make", id)
		}
	})
}

func TestTenantOfARequestIsNeverAWildcard(t *testing.T) {
	t.Parallel()
	space, err := subjects.New("oneturn")
	require.NoError(t, err)
	for _, id := range []string{"app", "", "-", "a.b*>", strings.Repeat("x", 5000)} {
		app, ok := space.APITenant(space.API(id, "turn"))
		require.True(t, ok, id)
		require.Equal(t, subjects.Token(id), app)
	}
	for _, subject := range []string{
		"oneturn.api.*.turn", "oneturn.api.>", "oneturn.api.>.turn", "oneturn.api..turn", "oneturn.api.app", "oneturn.api.a*.turn",
		"oneturn.api.=2e.turn", "other.api.app.turn",
	} {
		_, ok := space.APITenant(subject)
		require.False(t, ok, subject)
	}
}

// FuzzParse: whatever parses is made of tokens that hold no wildcard and no dot, and is built
// again as it was.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"oneturn.in.default.cancel.a.w.c", "oneturn.in.*.>.a.w.c", "oneturn.events.a.c.0-t.0.ask.1", "oneturn.api.a.turn", "e.a.c.t.0.tool_call",
		"p.a.c.t.0.delta.1", "oneturn.in.....", "e.*.c.t.0.x", "e.a.c.t.0.x.>", "\xff.\x00",
	} {
		f.Add(s)
	}
	space, err := subjects.New("oneturn")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, s string) {
		if in, ok := space.ParseIn(s); ok {
			requireTokens(t, s, "oneturn", "in", in.Pool, in.Kind, in.App, in.Workflow, in.Chat)
		}
		if r, ok := subjects.ParseKey(s); ok {
			requireTokens(t, s, strings.Split(map[bool]string{false: r.Public(r.Kind), true: r.Key.Private(r.Kind)}[r.Private]+"."+r.ID, ".")...)
			require.NotContains(t, strings.Split(s, "."), "*")
			require.NotContains(t, strings.Split(s, "."), ">")
		}
		if app, ok := space.APITenant(s); ok {
			require.False(t, strings.ContainsAny(app, "*>."), app)
			require.NotEmpty(t, app)
		}
	})
}

// requireTokens fails unless the tokens, the last of which may be absent, make the subject.
func requireTokens(t *testing.T, subject string, tokens ...string) {
	t.Helper()
	require.Equal(t, subject, strings.TrimSuffix(strings.Join(tokens, "."), "."))
	require.Equal(t, tokens, strings.Split(strings.Join(tokens, "."), "."), "a token holds a dot")
}

func TestRatesOfToolsAndTenantsHaveSeparateKeys(t *testing.T) {
	t.Parallel()
	s := space(t)
	require.Equal(t, "A_B_LIMITS", s.LimitsBucket())
	seen := map[string]bool{}
	for _, tool := range []string{"", "a", "Shop/refund", strings.Repeat("x", 1000), "a.>"} {
		keys := []string{subjects.LimitKey(tool, "", true)}
		for _, tenant := range []string{"", "default", "*", strings.Repeat("x", 1000)} {
			keys = append(keys, subjects.LimitKey(tool, tenant, false))
		}
		for _, key := range keys {
			require.False(t, seen[key], key)
			require.Regexp(t, `^[A-Za-z0-9_-]{22}(\.[A-Za-z0-9_-]{22})?$`, key)
			seen[key] = true
		}
	}
}
