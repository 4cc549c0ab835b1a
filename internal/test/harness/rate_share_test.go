package harness_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

func TestChatThatIsSlowedDownByTheFaultOfAnotherIsSeen(t *testing.T) {
	t.Parallel()
	// Ten turns a second of a bystander; from the tenth second on, of those only some.
	run := func(during int) *oneturntest.Facts {
		f := &oneturntest.Facts{}
		for i := range 200 {
			if i >= 100 && i%10 >= during {
				continue
			}
			a := oneturntest.Accepted{App: "app", Chat: "bystander", Turn: strconv.Itoa(i)}
			f.Accepted = append(f.Accepted, a)
			f.Journal = append(f.Journal, idempotency.Record{
				Key: subjects.TurnKey(a.App, a.Chat, "", a.Turn).Public("tool_response"), Time: time.Unix(0, int64(i)*1e8),
			})
		}
		return f
	}
	others := func(a oneturntest.Accepted) bool { return a.Chat == "bystander" }
	from, to := time.Unix(10, 0), time.Unix(20, 0)
	require.InDelta(t, 1, harness.Share(run(10), from, to, others), 0.01)
	require.InDelta(t, 0.5, harness.Share(run(5), from, to, nil), 0.01)
	require.Empty(t, harness.CheckShare(run(9), from, to, others))
	found := harness.CheckShare(run(7), from, to, others)
	require.Len(t, found, 1)
	require.Equal(t, "I11", found[0].Invariant)
	require.NotEmpty(t, harness.CheckShare(run(10), from, to, func(oneturntest.Accepted) bool { return false }), "nothing was measured")
}
