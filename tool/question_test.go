package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/memhost"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type verdict struct {
	Status string `json:"status"`
	Note   string `json:"note,omitempty"`
}

func review(ctx context.Context, title string) (string, error) {
	v, err := tool.Ask[verdict](ctx, tool.Question{
		Name: "review", Tool: "Approval", Component: "ApprovalCard", Display: "artifact",
		Payload: map[string]any{"title": title}, Timeout: time.Hour, Secret: true,
	})
	return v.Status + v.Note, err
}

func TestAskPutsAllOfTheQuestionToTheHost(t *testing.T) {
	t.Parallel()
	var host memhost.Host
	_, err := memhost.CallTool(t.Context(), &host, review, "News")
	require.ErrorIs(t, err, tool.ErrParked)
	schema, err := tools.SchemaOf[verdict]()
	require.NoError(t, err)
	require.Equal(t, tools.Question{
		Name: "review", Tool: "Approval", Component: "ApprovalCard", Display: "artifact",
		Payload: json.RawMessage(`{"title":"News"}`), Schema: schema, Timeout: time.Hour, Secret: true,
	}, host.Asked()[0].Question)

	host.Answer("review", verdict{Status: "approved"})
	got, err := memhost.CallTool(t.Context(), &host, review, "News")
	require.NoError(t, err)
	require.Equal(t, "approved", got)
	require.Len(t, host.Asked(), 1)
}

func TestAskGivesTheAnswerAsTheTypeThatIsAskedFor(t *testing.T) {
	t.Parallel()
	check := func(answer string, want any, ask func(ctx context.Context) (any, error)) {
		t.Helper()
		var host memhost.Host
		host.Answer("1", json.RawMessage(answer))
		got, err := memhost.CallTool(t.Context(), &host, func(ctx context.Context, _ any) (any, error) { return ask(ctx) }, nil)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	q := tool.Question{}
	check(`{"status":"ok","note":"now"}`, verdict{"ok", "now"}, func(ctx context.Context) (any, error) { return tool.Ask[verdict](ctx, q) })
	check(`true`, true, func(ctx context.Context) (any, error) { return tool.Ask[bool](ctx, q) })
	check(`["a"]`, []string{"a"}, func(ctx context.Context) (any, error) { return tool.Ask[[]string](ctx, q) })
	check(`{"n":12345678901234567890}`, map[string]any{"n": json.Number("12345678901234567890")}, func(ctx context.Context) (any, error) {
		return tool.Ask[map[string]any](ctx, q)
	})
	check(`{"n":1.50}`, map[string]any{"n": json.Number("1.50")}, func(ctx context.Context) (any, error) { return tool.Ask[any](ctx, q) })
	check(`null`, json.RawMessage(`null`), func(ctx context.Context) (any, error) { return tool.Ask[json.RawMessage](ctx, q) })
	own := tool.Question{Schema: json.RawMessage(`{"enum":["yes","no"]}`)}
	check(`"no"`, "no", func(ctx context.Context) (any, error) { return tool.Ask[string](ctx, own) })
}

func TestAnAnswerThatOnlyTheSchemaAllowsIsAClearError(t *testing.T) {
	t.Parallel()
	var host memhost.Host
	host.Answer("1", "a secret text")
	_, err := memhost.CallTool(t.Context(), &host, func(ctx context.Context, _ any) (int, error) {
		return tool.Ask[int](ctx, tool.Question{Schema: json.RawMessage(`{}`)})
	}, nil)
	require.ErrorIs(t, err, events.ErrToolError)
	require.ErrorContains(t, err, "does not match type int")
	require.NotContains(t, err.Error(), "secret")
}

func TestInputAsksForText(t *testing.T) {
	t.Parallel()
	var host memhost.Host
	host.Answer("name", "Ada")
	host.Answer("1", "sk-1")
	got, err := memhost.CallTool(t.Context(), &host, func(ctx context.Context, _ any) ([]string, error) {
		name, err := tool.Input(ctx, "Your name?", tool.InputOptions{Name: "name", Timeout: time.Minute})
		if err != nil {
			return nil, err
		}
		key, err := tool.Input(ctx, "Your key?", tool.InputOptions{Secret: true})
		return []string{name, key}, err
	}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"Ada", "sk-1"}, got)
	require.Equal(t, tools.Question{
		Name: "name", Input: true, Payload: json.RawMessage(`{"password":false,"prompt":"Your name?"}`), Timeout: time.Minute,
	}, host.Asked()[0].Question)
	require.Equal(t, tools.Question{
		Input: true, Payload: json.RawMessage(`{"password":true,"prompt":"Your key?"}`), Secret: true,
	}, host.Asked()[1].Question)
}

func TestInputFindsTheTextInEveryFormThatFrontendsSend(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`"Ada"`: "Ada", `{"text":"Ada","extra":1}`: "Ada", `{"user_input":"Ada"}`: "Ada", `{"text":1,"value":"Ada"}`: "Ada",
		`null`: "", `{}`: "", `12`: "12", `["a"]`: `["a"]`, `{"x":1}`: `{"x":1}`,
	} {
		var host memhost.Host
		host.Answer("1", json.RawMessage(answer))
		got, err := memhost.CallTool(t.Context(), &host, func(ctx context.Context, _ any) (string, error) { return tool.Input(ctx, "?", tool.InputOptions{}) }, nil)
		require.NoError(t, err)
		require.Equal(t, want, got, answer)
	}
}

func TestToolMayContinueAfterExpiry(t *testing.T) {
	t.Parallel()
	var host memhost.Host
	host.Expire("review")
	_, err := memhost.CallTool(t.Context(), &host, review, "News")
	require.ErrorIs(t, err, tool.ErrExpired)
	require.Equal(t, events.CodeExpired, events.CodeOf(err))
	require.NotErrorIs(t, err, tool.ErrParked)
}

func TestShowDismissAndProgressReachTheHost(t *testing.T) {
	t.Parallel()
	var host memhost.Host
	for range 2 { // a run that is repeated shows nothing new
		_, err := memhost.CallTool(t.Context(), &host, func(ctx context.Context, _ any) (any, error) {
			id, err := tool.Show(ctx, tool.Surface{Tool: "Report", Component: "Card", Display: "inline", Payload: verdict{Status: "half"}})
			if err != nil {
				return nil, err
			}
			return nil, errors.Join(tool.Progress(ctx, 50, "half"), tool.Dismiss(ctx, id))
		}, nil)
		require.NoError(t, err)
	}
	require.Equal(t, []memhost.Shown{{
		ID: "s1", Dismissed: true,
		Surface: tools.Surface{Tool: "Report", Component: "Card", Display: "inline", Payload: json.RawMessage(`{"status":"half"}`)},
	}}, host.Shown())
	half := tools.Progress{Percent: 50, Message: "half"}
	require.Equal(t, []tools.Progress{half, half}, host.Reported())
}

func TestWithoutACallOrAHostTheErrorNamesTheFix(t *testing.T) {
	t.Parallel()
	uses := map[string]func(ctx context.Context) error{
		"tool.Ask":      func(ctx context.Context) error { _, err := tool.Ask[bool](ctx, tool.Question{}); return err },
		"tool.Input":    func(ctx context.Context) error { _, err := tool.Input(ctx, "?", tool.InputOptions{}); return err },
		"tool.Show":     func(ctx context.Context) error { _, err := tool.Show(ctx, tool.Surface{}); return err },
		"tool.Dismiss":  func(ctx context.Context) error { return tool.Dismiss(ctx, "1") },
		"tool.Progress": func(ctx context.Context) error { return tool.Progress(ctx, 1, "") },
	}
	for op, use := range uses {
		err := use(t.Context())
		require.ErrorIs(t, err, events.ErrToolError)
		require.ErrorContains(t, err, op+": tool_error: this context does not belong to a call")
		invoker := tools.Func(func(ctx context.Context, _ map[string]any) (any, error) { return nil, use(ctx) })
		_, err = invoker.Invoke(t.Context(), &tools.Call{})
		require.ErrorIs(t, err, events.ErrToolError)
		require.ErrorContains(t, err, op+": tool_error: no host: run the tool in a worker")
	}
}

func TestMistakesOfTheToolAreNamed(t *testing.T) {
	t.Parallel()
	type loop struct{ Next *loop }
	cases := map[string]func(ctx context.Context) error{
		"not a JSON object": func(ctx context.Context) error {
			_, err := tool.Ask[bool](ctx, tool.Question{Payload: []int{1}})
			return err
		},
		"no JSON form": func(ctx context.Context) error {
			_, err := tool.Show(ctx, tool.Surface{Payload: map[string]any{"f": func() {}}})
			return err
		},
		"give the question a Schema": func(ctx context.Context) error {
			_, err := tool.Ask[loop](ctx, tool.Question{})
			return err
		},
		`inside step "s" it needs a Name`: func(ctx context.Context) error {
			_, err := tool.Step(ctx, "s", func(ctx context.Context) (bool, error) { return tool.Ask[bool](ctx, tool.Question{}) })
			return err
		},
	}
	for want, use := range cases {
		var host memhost.Host
		_, err := memhost.CallTool(t.Context(), &host, func(ctx context.Context, _ any) (any, error) { return nil, use(ctx) }, nil)
		require.ErrorIs(t, err, events.ErrToolError)
		require.ErrorContains(t, err, want)
		require.Empty(t, host.Asked())
	}
}

// A tool that asks before it publishes, in a test without a server. In a worker it is the same
// function, given to oneturn.NewTool.
func ExampleAsk() {
	type decision struct {
		Status string `json:"status"`
		Reason string `json:"reason,omitempty"`
	}
	publish := func(ctx context.Context, title string) (string, error) {
		d, err := tool.Ask[decision](ctx, tool.Question{
			Tool: "Approval", Display: "artifact", Timeout: 24 * time.Hour,
			Payload: map[string]any{"title": title},
		})
		if errors.Is(err, tool.ErrExpired) {
			return "no decision within a day", nil
		}
		if err != nil { // also tool.ErrParked: the answer runs this again
			return "", err
		}
		return d.Status + ": " + d.Reason, nil
	}

	var host oneturntest.Host
	host.Answer("Approval", map[string]any{"status": "rejected", "reason": "too long"})
	fmt.Println(oneturntest.CallTool(context.Background(), &host, publish, "News"))
	// Output: rejected: too long <nil>
}

func ExampleInput() {
	connect := func(ctx context.Context, service string) (string, error) {
		key, err := tool.Input(ctx, "API key of "+service+"?", tool.InputOptions{Secret: true})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("connected to %s with a key of %d characters", service, len(key)), nil
	}
	var host oneturntest.Host
	host.Answer("1", "sk-12345")
	fmt.Println(oneturntest.CallTool(context.Background(), &host, connect, "Stripe"))
	// Output: connected to Stripe with a key of 8 characters <nil>
}
