package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestACallLeavesABoundedNumberOfRecords(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		fits int
		do   func(ctx context.Context, host tools.Host, n int) error
	}{
		"surfaces": {1000, func(ctx context.Context, host tools.Host, _ int) error {
			_, err := host.Show(ctx, tools.Surface{})
			return err
		}},
		"steps": {2000, func(ctx context.Context, host tools.Host, n int) error {
			_, _, err := host.StepResult(ctx, strconv.Itoa(n/2)) // one that comes again counts once
			return err
		}},
	} {
		fits := 0
		tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
			for n := range 2 * c.fits {
				if err := c.do(ctx, call.Host, n); err != nil {
					return tools.Result{}, err
				}
				fits++
			}
			return tools.Result{}, nil
		}
		inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
			t.Helper()
			require.Equal(t, inbound.Ack, settled(t, o.handle(o.turn())).Do)
			require.Equal(t, c.fits, fits)
			r := o.response()
			require.Equal(t, events.CodeTooLarge, r.Code)
			require.Contains(t, r.Content, "this call has 1000 "+what+", and no call may have more")
		})
	}
}

// TestQuestionsOfEarlierRunsCountToo has each run ask what no other has asked.
func TestQuestionsOfEarlierRunsCountToo(t *testing.T) {
	t.Parallel()
	const most = 256
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		errs := make(chan error, most)
		asked := 0
		for i := range most - 1 {
			name := strconv.Itoa(i) // the first run stays below the bound
			if call.Epoch > 1 && i > 0 {
				name = fmt.Sprint("late ", i)
			}
			asked++
			go func() {
				_, err := call.Host.Ask(ctx, tools.Question{Name: name})
				errs <- err
			}()
		}
		for range asked {
			if err := <-errs; errors.Is(err, events.ErrTooLarge) {
				return tools.Result{}, err
			}
		}
		return tools.Result{}, context.Cause(ctx)
	}
	inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
		t.Helper()
		done := o.handle(o.turn())
		pass(11 * time.Second)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.True(t, o.parked())
		o.answer(events.AskID("0", 0), "yes")
		r := o.response()
		require.Equal(t, events.CodeTooLarge, r.Code)
		require.Contains(t, r.Content, "this call has 256 questions, and no call may have more")
	})
}

// TestSurfacesAndStepsOfEarlierRunsCountToo has a tool name rows and steps by its run, so that no run displays
// rows of another.
func TestSurfacesAndStepsOfEarlierRunsCountToo(t *testing.T) {
	t.Parallel()
	const each, most = 600, 1000
	for kind, put := range map[string]func(ctx context.Context, d tools.Host, name string) error{
		"surfaces": func(ctx context.Context, d tools.Host, name string) error {
			_, err := d.Show(ctx, tools.Surface{Tool: "Row", Name: name})
			return err
		},
		"steps": func(ctx context.Context, d tools.Host, name string) error {
			_, done, err := d.StepResult(ctx, name)
			if err == nil && !done {
				_, err = d.StoreStep(ctx, name, []byte(`1`))
			}
			return err
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tool := func(ctx context.Context, c *tools.Call) (tools.Result, error) {
				for i := range each {
					if err := put(ctx, c.Host, fmt.Sprintf("%d of epoch %d", i, c.Epoch)); err != nil {
						return tools.Result{}, err
					}
				}
				_, err := c.Host.Ask(ctx, tools.Question{Name: "q"})
				return tools.Result{}, err
			}
			inBubble(t, bindings.EffectIdempotent, tool, func(t *testing.T, o *bubble) {
				t.Helper()
				done := o.handle(o.turn())
				pass(11 * time.Second)
				require.Equal(t, inbound.Ack, settled(t, done).Do)
				require.True(t, o.parked())
				done = o.handle(o.answers("q", "yes"))
				pass(11 * time.Second)
				require.Equal(t, inbound.Ack, settled(t, done).Do)
				require.Equal(t, events.CodeTooLarge, o.response().Code)
				require.Contains(t, o.response().Content, fmt.Sprintf("%d %s", most, kind))
				records, err := o.store.Scan(t.Context(), o.key, nil)
				require.NoError(t, err)
				require.Less(t, len(records), most+20)
			})
		})
	}
}
