package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/memhost"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

type receipt struct {
	ID     string `json:"id"`
	Extra  any    `json:"extra"`
	hidden string
}

func TestAStepThatIsDoneIsNotEnteredAgain(t *testing.T) {
	t.Parallel()
	var host memhost.Host
	entered := 0
	order := func(ctx context.Context, _ any) (receipt, error) {
		got, err := tool.Step(ctx, "charge", func(context.Context) (receipt, error) {
			entered++
			return receipt{ID: fmt.Sprint("r", entered), Extra: 1.5, hidden: "lost"}, nil
		})
		if err != nil {
			return got, err
		}
		_, err = tool.Ask[bool](ctx, tool.Question{})
		return got, err
	}
	want := receipt{ID: "r1", Extra: json.Number("1.5")} // through JSON, on the first run as well
	for range 2 {
		got, err := memhost.CallTool(t.Context(), &host, order, nil)
		require.ErrorIs(t, err, tool.ErrParked)
		require.Equal(t, want, got)
	}
	host.Answer("1", true)
	got, err := memhost.CallTool(t.Context(), &host, order, nil)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, 1, entered)
}

func TestAStepThatFailsStoresNothing(t *testing.T) {
	t.Parallel()
	var host memhost.Host
	declined := errors.New("declined")
	entered := 0
	order := func(ctx context.Context, _ any) (int, error) {
		return tool.Step(ctx, "charge", func(context.Context) (int, error) {
			entered++
			if entered == 1 {
				return 0, declined
			}
			return entered, nil
		})
	}
	_, err := memhost.CallTool(t.Context(), &host, order, nil)
	require.Equal(t, declined, err)
	got, err := memhost.CallTool(t.Context(), &host, order, nil)
	require.NoError(t, err)
	require.Equal(t, 2, got)
}

func TestTheStoredResultOfAnotherRunCounts(t *testing.T) {
	t.Parallel()
	var host memhost.Host
	got, err := memhost.CallTool(t.Context(), &host, func(ctx context.Context, _ any) (string, error) {
		return tool.Step(ctx, "charge", func(ctx context.Context) (string, error) {
			_, err := host.StoreStep(ctx, "charge", json.RawMessage(`"theirs"`)) // a concurrent run was faster
			return "ours", err
		})
	}, nil)
	require.NoError(t, err)
	require.Equal(t, "theirs", got)
}

func TestMistakesWithStepsAreNamed(t *testing.T) {
	t.Parallel()
	one := func(context.Context) (int, error) { return 1, nil }
	cases := map[string]func(ctx context.Context) error{
		"has begun a step of this name before": func(ctx context.Context) error {
			_, err := tool.Step(ctx, "s", one)
			require.NoError(t, err)
			_, err = tool.Step(ctx, "s", one)
			return err
		},
		"a step needs a name": func(ctx context.Context) error { _, err := tool.Step(ctx, "", one); return err },
		"the name has 300 bytes": func(ctx context.Context) error {
			_, err := tool.Step(ctx, strings.Repeat("x", 300), one)
			return err
		},
		"the step is done, but its result of type func() has no JSON form": func(ctx context.Context) error {
			_, err := tool.Step(ctx, "s", func(context.Context) (func(), error) { return func() {}, nil })
			return err
		},
		"the stored result does not match type int": func(ctx context.Context) error {
			_, err := tools.CallFrom(ctx).Host.StoreStep(ctx, "s", json.RawMessage(`"text"`))
			require.NoError(t, err)
			_, err = tool.Step(ctx, "s", one)
			return err
		},
	}
	for want, use := range cases {
		var host memhost.Host
		_, err := memhost.CallTool(t.Context(), &host, func(ctx context.Context, _ any) (any, error) { return nil, use(ctx) }, nil)
		require.ErrorIs(t, err, events.ErrToolError)
		require.ErrorContains(t, err, want)
	}
	_, err := tool.Step(t.Context(), "s", one)
	require.ErrorContains(t, err, `step "s": tool_error: this context does not belong to a call`)
	_, err = tools.BeginStep(t.Context(), "s")
	require.ErrorContains(t, err, "this context does not belong to a call")
}

func TestErrorsOfTheHostEndTheStep(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var host memhost.Host
	_, err := memhost.CallTool(ctx, &host, func(ctx context.Context, _ any) (int, error) {
		return tool.Step(ctx, "s", func(context.Context) (int, error) { cancel(); return 1, nil })
	}, nil)
	require.ErrorIs(t, err, context.Canceled)
	_, err = memhost.CallTool(ctx, &host, func(ctx context.Context, _ any) (int, error) {
		return tool.Step(ctx, "s", func(context.Context) (int, error) { panic("entered") })
	}, nil)
	require.ErrorIs(t, err, context.Canceled)
}

// The order is placed before the question, in a step: the run that gets the
// answer finds it placed.
func ExampleStep() {
	order := func(ctx context.Context, item string) (string, error) {
		number, err := tool.Step(ctx, "place the order", func(context.Context) (int, error) {
			fmt.Println("order placed:", item)
			return 42, nil
		})
		if err != nil {
			return "", err
		}
		gift, err := tool.Ask[bool](ctx, tool.Question{Payload: map[string]any{"order": number, "ask": "Gift wrap?"}})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("order %d, gift wrap: %t", number, gift), nil
	}

	var host oneturntest.Host
	_, err := oneturntest.CallTool(context.Background(), &host, order, "tea")
	fmt.Println(errors.Is(err, tool.ErrParked)) // the turn is parked, and this run ends
	host.Answer("1", true)
	fmt.Println(oneturntest.CallTool(context.Background(), &host, order, "tea"))
	// Output:
	// order placed: tea
	// true
	// order 42, gift wrap: true <nil>
}
