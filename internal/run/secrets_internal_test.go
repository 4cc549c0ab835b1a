package run

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/redact"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// recorder is a host that records what it gets and returns a given answer.
type recorder struct {
	given  []any
	answer tools.Answer
	steps  map[string]json.RawMessage
}

func (r *recorder) Ask(_ context.Context, q tools.Question) (tools.Answer, error) {
	r.given = append(r.given, q)
	return r.answer, nil
}

func (r *recorder) Show(_ context.Context, s tools.Surface) (string, error) {
	r.given = append(r.given, s)
	return "s1", nil
}

func (r *recorder) Dismiss(context.Context, string) error { return nil }

func (r *recorder) Progress(_ context.Context, p tools.Progress) error {
	r.given = append(r.given, p)
	return nil
}

func (r *recorder) StepResult(_ context.Context, name string) (json.RawMessage, bool, error) {
	result, done := r.steps[name]
	return result, done, nil
}

func (r *recorder) StoreStep(_ context.Context, name string, result json.RawMessage) (json.RawMessage, error) {
	r.steps[name] = result
	return result, nil
}

// guarded returns a redacting host over a recorder.
func guarded(t *testing.T, lines string) (tools.Host, *recorder, *tools.Call, *Turn) {
	t.Helper()
	c := &Config{}
	if lines != "" {
		keys, err := secrets.Parse([]byte(lines))
		require.NoError(t, err)
		c.SecretKeys = keys
	}
	r, one := &recorder{steps: map[string]json.RawMessage{}}, &Turn{Key: subjects.TurnKey("a", "c", "", "t")}
	call := &tools.Call{Secrets: &redact.SecretAnswers{}}
	one.StructuredOutputReady = &events.StructuredOutputReady{}
	of := &Run{cfg: c, t: one}
	of.shared = &shared{root: of}
	return &redactingHost{Host: r, run: of, scrub: call.Secrets}, r, call, one
}

func TestWithoutKeysASecretQuestionIsNotAsked(t *testing.T) {
	t.Parallel()
	host, r, _, one := guarded(t, "")
	for _, q := range []tools.Question{
		{Secret: true},
		{Payload: []byte(`{"fields":[{"maskInput":true}]}`)},
		{Payload: []byte(`{"services":["a"` + strings.Repeat(`,"a"`, 10_001) + `],"fields":[{"name":"api_key","type":"password"}]}`)},
		{Schema: []byte(`{"type":"object","properties":{"key":{"type":"string","format":"password"}}}`)},
		{Tool: "Sign in", Component: "PasswordInput"},
		{Tool: "PasswordInput"},
		{Payload: []byte(`{"fields":[{"name":"pin","obscureText":true}]}`)},
	} {
		_, err := host.Ask(t.Context(), q)
		require.ErrorIs(t, err, events.ErrToolError)
		require.ErrorContains(t, err, "--secret-keys")
	}
	require.Empty(t, r.given)
	require.False(t, one.Secret.Load())
	_, err := host.Ask(t.Context(), tools.Question{Payload: []byte(`{"fields":[]}`)})
	require.NoError(t, err)
}

func TestHostLetsNothingOfASecretAnswerOut(t *testing.T) {
	t.Parallel()
	host, r, call, one := guarded(t, secrets.NewKey())
	r.answer = tools.Answer{Value: []byte(`{"status":"submitted","data":{"key":"swordfish-4711"}}`)}
	require.False(t, call.Secrets.Active())
	a, err := host.Ask(t.Context(), tools.Question{Payload: []byte(`{"maskInput":true}`)})
	require.NoError(t, err)
	require.True(t, a.Secret)
	require.JSONEq(t, string(r.answer.Value), string(a.Value), "the tool is handed the answer itself")
	require.True(t, one.Secret.Load())

	r.answer = tools.Answer{Value: []byte(`true`)}
	_, err = host.Ask(t.Context(), tools.Question{
		Name: "sure-swordfish-4711", Tool: "swordfish-4711", Component: "swordfish-4711", Display: "swordfish-4711",
		Payload: []byte(`{"swordfish-4711":"swordfish-4711"}`), Schema: []byte(`{"const":"swordfish-4711"}`),
	})
	require.NoError(t, err)
	_, err = host.Show(t.Context(), tools.Surface{
		Name: "swordfish-4711", Tool: "swordfish-4711", Component: "swordfish-4711", Display: "swordfish-4711", Payload: []byte(`["swordfish-4711"]`),
	})
	require.NoError(t, err)
	require.NoError(t, host.Progress(t.Context(), tools.Progress{Message: "swordfish-4711", Tool: "swordfish-4711", Corr: "swordfish-4711"}))
	for _, given := range r.given[1:] {
		text, err := json.Marshal(given)
		require.NoError(t, err)
		require.NotContains(t, string(text), "swordfish")
		require.Contains(t, string(text), redact.Replacement)
	}
}

func TestStepsAfterASecretAnswerAreSealedAndReturnWhole(t *testing.T) {
	t.Parallel()
	host, r, call, _ := guarded(t, secrets.NewKey())
	plain, err := host.StoreStep(t.Context(), "before", []byte(`1`))
	require.NoError(t, err)
	require.Equal(t, `1`, string(plain))
	require.Equal(t, `1`, string(r.steps["before"]))

	call.Secrets.AddSecret([]byte(`"swordfish-4711"`), nil)
	got, err := host.StoreStep(t.Context(), "login swordfish-4711", []byte(`{"token":"swordfish-4711"}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"token":"swordfish-4711"}`, string(got))
	require.True(t, secrets.Sealed(r.steps["login [secret]"]))
	for _, name := range []string{"before", "login swordfish-4711"} {
		_, done, err := host.StepResult(t.Context(), name)
		require.NoError(t, err)
		require.True(t, done)
	}
	r.steps["moved"] = r.steps["login [secret]"]
	_, _, err = host.StepResult(t.Context(), "moved")
	require.ErrorIs(t, err, events.ErrStateCorrupt)
	_, done, err := host.StepResult(t.Context(), "never")
	require.NoError(t, err)
	require.False(t, done)
}

func TestOutcomeOfACallLosesTheSecretsThatItWasHanded(t *testing.T) {
	t.Parallel()
	var s redact.SecretAnswers
	before := engine.Outcome{Payload: []byte(`{"a":"swordfish-4711"}`)}
	Scrub(&s, &before)
	require.JSONEq(t, `{"a":"swordfish-4711"}`, string(before.Payload))
	s.AddSecret([]byte(`"swordfish-4711"`), nil)
	out := engine.Outcome{
		Payload: []byte(`{"a":"swordfish-4711"}`), Content: "used swordfish-4711", Remove: []string{"swordfish-4711"},
		Set: map[string]any{"key": "swordfish-4711", "swordfish-4711": json.Number("1")},
		Err: errors.Join(&tools.PanicError{Stack: []byte("panic: swordfish-4711")}),
	}
	Scrub(&s, &out)
	require.JSONEq(t, `{"a":"[secret]"}`, string(out.Payload))
	require.Equal(t, "used [secret]", out.Content)
	require.Equal(t, map[string]any{"key": "[secret]", "[secret]": json.Number("1")}, out.Set)
	require.Equal(t, []string{"[secret]"}, out.Remove)
	var panicked *tools.PanicError
	require.ErrorAs(t, out.Err, &panicked)
	require.Equal(t, "panic: [secret]", string(panicked.Stack))
}
