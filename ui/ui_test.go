package ui_test

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
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/turn"
	"github.com/oneturn/oneturn/ui"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type verdict struct {
	Status string `json:"status"`
	Note   string `json:"note,omitempty"`
}

func review(ctx context.Context, title string) (string, error) {
	v, err := ui.Ask[verdict](ctx, ui.Question{
		Name: "review", Tool: "Approval", Component: "ApprovalCard", Display: "artifact",
		Payload: map[string]any{"title": title}, Timeout: time.Hour, Secret: true,
	})
	return v.Status + v.Note, err
}

func TestAskPutsAllOfTheQuestionToTheDesk(t *testing.T) {
	t.Parallel()
	var desk oneturntest.Desk
	_, err := oneturntest.CallTool(t.Context(), &desk, review, "News")
	require.ErrorIs(t, err, ui.ErrParked)
	schema, err := tools.SchemaOf[verdict]()
	require.NoError(t, err)
	require.Equal(t, tools.Question{
		Name: "review", Tool: "Approval", Component: "ApprovalCard", Display: "artifact",
		Payload: json.RawMessage(`{"title":"News"}`), Schema: schema, Timeout: time.Hour, Secret: true,
	}, desk.Asked()[0].Question)

	desk.Answer("review", verdict{Status: "approved"})
	got, err := oneturntest.CallTool(t.Context(), &desk, review, "News")
	require.NoError(t, err)
	require.Equal(t, "approved", got)
	require.Len(t, desk.Asked(), 1)
}

func TestAskGivesTheAnswerAsTheTypeThatIsAskedFor(t *testing.T) {
	t.Parallel()
	check := func(answer string, want any, ask func(ctx context.Context) (any, error)) {
		t.Helper()
		var desk oneturntest.Desk
		desk.Answer("1", json.RawMessage(answer))
		got, err := oneturntest.CallTool(t.Context(), &desk, func(ctx context.Context, _ any) (any, error) { return ask(ctx) }, nil)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	q := ui.Question{}
	check(`{"status":"ok","note":"now"}`, verdict{"ok", "now"}, func(ctx context.Context) (any, error) { return ui.Ask[verdict](ctx, q) })
	check(`true`, true, func(ctx context.Context) (any, error) { return ui.Ask[bool](ctx, q) })
	check(`["a"]`, []string{"a"}, func(ctx context.Context) (any, error) { return ui.Ask[[]string](ctx, q) })
	check(`{"n":12345678901234567890}`, map[string]any{"n": json.Number("12345678901234567890")}, func(ctx context.Context) (any, error) {
		return ui.Ask[map[string]any](ctx, q)
	})
	check(`{"n":1.50}`, map[string]any{"n": json.Number("1.50")}, func(ctx context.Context) (any, error) { return ui.Ask[any](ctx, q) })
	check(`null`, json.RawMessage(`null`), func(ctx context.Context) (any, error) { return ui.Ask[json.RawMessage](ctx, q) })
	own := ui.Question{Schema: json.RawMessage(`{"enum":["yes","no"]}`)}
	check(`"no"`, "no", func(ctx context.Context) (any, error) { return ui.Ask[string](ctx, own) })
}

func TestAnAnswerThatOnlyTheSchemaAllowsIsAClearError(t *testing.T) {
	t.Parallel()
	var desk oneturntest.Desk
	desk.Answer("1", "a secret text")
	_, err := oneturntest.CallTool(t.Context(), &desk, func(ctx context.Context, _ any) (int, error) {
		return ui.Ask[int](ctx, ui.Question{Schema: json.RawMessage(`{}`)})
	}, nil)
	require.ErrorIs(t, err, events.ErrToolError)
	require.ErrorContains(t, err, "does not fit int")
	require.NotContains(t, err.Error(), "secret")
}

func TestInputAsksForText(t *testing.T) {
	t.Parallel()
	var desk oneturntest.Desk
	desk.Answer("name", "Ada")
	desk.Answer("1", "sk-1")
	got, err := oneturntest.CallTool(t.Context(), &desk, func(ctx context.Context, _ any) ([]string, error) {
		name, err := ui.Input(ctx, "Your name?", ui.Named("name"), ui.Within(time.Minute))
		if err != nil {
			return nil, err
		}
		key, err := ui.Input(ctx, "Your key?", ui.Masked)
		return []string{name, key}, err
	}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"Ada", "sk-1"}, got)
	require.Equal(t, tools.Question{
		Name: "name", Input: true, Payload: json.RawMessage(`{"password":false,"prompt":"Your name?"}`), Timeout: time.Minute,
	}, desk.Asked()[0].Question)
	require.Equal(t, tools.Question{
		Input: true, Payload: json.RawMessage(`{"password":true,"prompt":"Your key?"}`), Secret: true,
	}, desk.Asked()[1].Question)
}

func TestInputTakesTheTextInWhateverFrontendsSend(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`"Ada"`: "Ada", `{"text":"Ada","extra":1}`: "Ada", `{"user_input":"Ada"}`: "Ada", `{"text":1,"value":"Ada"}`: "Ada",
		`null`: "", `{}`: "", `12`: "12", `["a"]`: `["a"]`, `{"x":1}`: `{"x":1}`,
	} {
		var desk oneturntest.Desk
		desk.Answer("1", json.RawMessage(answer))
		got, err := oneturntest.CallTool(t.Context(), &desk, func(ctx context.Context, _ any) (string, error) { return ui.Input(ctx, "?") }, nil)
		require.NoError(t, err)
		require.Equal(t, want, got, answer)
	}
}

func TestExpiryIsAnErrorThatAToolCanGoOnAfter(t *testing.T) {
	t.Parallel()
	var desk oneturntest.Desk
	desk.Expire("review")
	_, err := oneturntest.CallTool(t.Context(), &desk, review, "News")
	require.ErrorIs(t, err, ui.ErrExpired)
	require.Equal(t, events.CodeExpired, events.CodeOf(err))
	require.NotErrorIs(t, err, ui.ErrParked)
}

func TestShowDismissAndProgressReachTheDesk(t *testing.T) {
	t.Parallel()
	var desk oneturntest.Desk
	for range 2 { // a run that is repeated shows nothing new
		_, err := oneturntest.CallTool(t.Context(), &desk, func(ctx context.Context, _ any) (any, error) {
			id, err := ui.Show(ctx, ui.Surface{Tool: "Report", Component: "Card", Display: "inline", Payload: verdict{Status: "half"}})
			if err != nil {
				return nil, err
			}
			return nil, errors.Join(ui.Progress(ctx, 50, "half"), ui.Dismiss(ctx, id))
		}, nil)
		require.NoError(t, err)
	}
	require.Equal(t, []oneturntest.Shown{{
		ID: "s1", Dismissed: true,
		Surface: tools.Surface{Tool: "Report", Component: "Card", Display: "inline", Payload: json.RawMessage(`{"status":"half"}`)},
	}}, desk.Shown())
	half := tools.Progress{Percent: 50, Message: "half"}
	require.Equal(t, []tools.Progress{half, half}, desk.Reported())
}

func TestWithoutACallOrADeskTheErrorSaysSo(t *testing.T) {
	t.Parallel()
	uses := map[string]func(ctx context.Context) error{
		"ui.Ask":      func(ctx context.Context) error { _, err := ui.Ask[bool](ctx, ui.Question{}); return err },
		"ui.Input":    func(ctx context.Context) error { _, err := ui.Input(ctx, "?"); return err },
		"ui.Show":     func(ctx context.Context) error { _, err := ui.Show(ctx, ui.Surface{}); return err },
		"ui.Dismiss":  func(ctx context.Context) error { return ui.Dismiss(ctx, "1") },
		"ui.Progress": func(ctx context.Context) error { return ui.Progress(ctx, 1, "") },
	}
	for op, use := range uses {
		err := use(t.Context())
		require.ErrorIs(t, err, events.ErrToolError)
		require.ErrorContains(t, err, op+": tool_error: this context belongs to no call")
		tool := tools.Func(func(ctx context.Context, _ map[string]any) (any, error) { return nil, use(ctx) })
		_, err = tool.Invoke(t.Context(), &tools.Call{})
		require.ErrorIs(t, err, events.ErrToolError)
		require.ErrorContains(t, err, op+": tool_error: whoever called this tool has no desk")
	}
}

func TestMistakesOfTheToolAreNamed(t *testing.T) {
	t.Parallel()
	type loop struct{ Next *loop }
	cases := map[string]func(ctx context.Context) error{
		"no JSON object": func(ctx context.Context) error {
			_, err := ui.Ask[bool](ctx, ui.Question{Payload: []int{1}})
			return err
		},
		"no JSON form": func(ctx context.Context) error {
			_, err := ui.Show(ctx, ui.Surface{Payload: map[string]any{"f": func() {}}})
			return err
		},
		"give the question a Schema": func(ctx context.Context) error {
			_, err := ui.Ask[loop](ctx, ui.Question{})
			return err
		},
		`inside step "s" it needs a Name`: func(ctx context.Context) error {
			_, err := turn.Step(ctx, "s", func(ctx context.Context) (bool, error) { return ui.Ask[bool](ctx, ui.Question{}) })
			return err
		},
	}
	for want, use := range cases {
		var desk oneturntest.Desk
		_, err := oneturntest.CallTool(t.Context(), &desk, func(ctx context.Context, _ any) (any, error) { return nil, use(ctx) }, nil)
		require.ErrorIs(t, err, events.ErrToolError)
		require.ErrorContains(t, err, want)
		require.Empty(t, desk.Asked())
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
		d, err := ui.Ask[decision](ctx, ui.Question{
			Tool: "Approval", Display: "artifact", Timeout: 24 * time.Hour,
			Payload: map[string]any{"title": title},
		})
		if errors.Is(err, ui.ErrExpired) {
			return "nobody decided within a day", nil
		}
		if err != nil { // ui.ErrParked is one: whoever gets the answer runs this again
			return "", err
		}
		return d.Status + ": " + d.Reason, nil
	}

	var desk oneturntest.Desk
	desk.Answer("Approval", map[string]any{"status": "rejected", "reason": "too long"})
	fmt.Println(oneturntest.CallTool(context.Background(), &desk, publish, "News"))
	// Output: rejected: too long <nil>
}

func ExampleInput() {
	connect := func(ctx context.Context, service string) (string, error) {
		key, err := ui.Input(ctx, "API key of "+service+"?", ui.Masked)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("connected to %s with a key of %d characters", service, len(key)), nil
	}
	var desk oneturntest.Desk
	desk.Answer("1", "sk-12345")
	fmt.Println(oneturntest.CallTool(context.Background(), &desk, connect, "Stripe"))
	// Output: connected to Stripe with a key of 8 characters <nil>
}
