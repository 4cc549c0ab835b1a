package handlers_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/internal/throttle"
)

// logged has a kit write its log, with now as its time.
func logged(k *kit) (log *harness.Output, now *time.Time) {
	log, now = &harness.Output{}, new(time.Time)
	*now = time.Now()
	k.Logger, k.Now = slog.New(slog.NewTextHandler(log, nil)), func() time.Time { return *now }
	return log, now
}

func TestTenantCausesFewLogLinesAMinuteAndTheRestAreCounted(t *testing.T) {
	t.Parallel()
	const n = 200
	k := newKit(t, toolFunc(nothing))
	log, now := logged(k)
	a := k.asker("turn", "")
	a.ask("1", func(e *events.ToolCall) { e.UserID = "u" })
	seq := uint64(1)
	for range n {
		seq += 2
		m := k.mail(seq, events.KindStructuredOutputReady, []byte(`{"auto_tool_mode":true}`))
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), m.Message).Do)
		k.handled(k.answers(seq+1, a.question("1"), yes(), func(r *events.ToolCallResponse) { r.UserID = "mallory" }))
	}
	for _, line := range []string{`level=WARN msg="dead letter" reason=missing_field`, `level=INFO msg="answer not accepted" code=forbidden`} {
		require.Equal(t, throttle.Several, strings.Count(log.String(), line), "%s: %s", line, log)
	}
	*now = now.Add(time.Minute)
	k.Handle(t.Context(), k.mail(seq+2, events.KindStructuredOutputReady, []byte(`{"auto_tool_mode":true}`)).Message)
	k.handled(k.answers(seq+3, a.question("1"), yes()))
	require.Contains(t, log.String(), fmt.Sprintf("suppressed=%d", n-throttle.Several))
	require.InDelta(t, n+1, testutil.ToFloat64(k.Metrics.Dead.WithLabelValues("missing_field")), 0, "every one is counted")
	require.InDelta(t, n, testutil.ToFloat64(k.Metrics.Answers.WithLabelValues(string(events.AnswerForbidden))), 0)
}

func TestLongIDsMakeNoLongLogLines(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	log, _ := logged(k)
	long := strings.Repeat("q", 500)
	require.Equal(t, events.AnswerForbidden, k.handled(k.answers(2, long+"/1", yes(), func(r *events.ToolCallResponse) { r.App = "other" })).Code)
	require.Contains(t, log.String(), "answer not accepted")
	require.Less(t, len(log.String()), 600)
}
