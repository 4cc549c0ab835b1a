package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

func text(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(data)
}

// column returns what stands in backticks in a column of a page's table, over all rows.
func column(t *testing.T, name, header string, n int) []string {
	t.Helper()
	_, body, ok := strings.Cut(text(t, name), "\n"+header+"\n")
	require.True(t, ok, "%s: no table %s", name, header)
	var found []string
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(strings.Split(line, "|")[n], -1) {
			found = append(found, m[1])
		}
	}
	require.NotEmpty(t, found)
	return found
}

func TestContractHasTheNamesOfTheCode(t *testing.T) {
	t.Parallel()
	s, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	open := func(name string) string { // the page's <…> for ids
		return strings.NewReplacer("POOL", "<pool>", "KIND", "<kind>", "APP", "<app>", "WF", "<workflow>", "CHAT", "<chat>",
			"0-TURN.0", "<turn>.<call>", "VERB", "<verb>").Replace(name)
	}
	key := subjects.TurnKey("APP", "CHAT", "", "TURN")
	require.ElementsMatch(t, []string{
		open(s.In("POOL", "KIND", "APP", "WF", "CHAT")), s.InStream(), open(s.WorkerConsumer("POOL")), s.InStream(), s.TurnsBucket(),
		open(s.EventOfTurn(key, "KIND")), open(s.Live("APP", "CHAT", "KIND")), open(s.API("APP", "VERB")), s.DeadStream(),
		strings.Replace(open(s.DeadOf("oneturn.in.p.cancel.APP.W.c")), "cancel", "<kind>", 1), s.ContextBucket(), open(subjects.ContextKey("APP", "CHAT")), s.LimitsBucket(), s.WorkflowsBucket(), open(subjects.WorkflowKey("WF", "POOL")), s.BlobsBucket(),
		s.TimersStream(), s.TimerSubjects(), s.DueSubjects(),
	}, itemsOf(t, "wire-contract.md", "Subjects, streams, buckets and consumers:"))

	require.Equal(t, []string{
		subjects.Token("chat_1"), subjects.Token("a.b *"), subjects.TurnToken("", "hello-1"), subjects.TurnToken("r 1", "hello-2"),
		subjects.MessageToken("r 1", "m1"),
	}, column(t, "wire-contract.md", "| id | token |", 2))
}

// headersOf returns the headers that a file names in its constants.
func headersOf(t *testing.T, file string) (headers []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`Header[A-Za-z0-9]+\s+= "([A-Za-z0-9-]+)"`).FindAllStringSubmatch(text(t, file), -1) {
		headers = append(headers, m[1])
	}
	require.Greater(t, len(headers), 3)
	return headers
}

func TestContractHasTheCodesReasonsAndHeadersOfTheCode(t *testing.T) {
	t.Parallel()
	source := text(t, "../events/error.go")
	var codes []string
	for _, m := range regexp.MustCompile(`Code\s+= "([a-z_]+)"`).FindAllStringSubmatch(source, -1) {
		codes = append(codes, m[1])
	}
	require.Greater(t, len(codes), 10)
	require.ElementsMatch(t, codes, itemsOf(t, "wire-contract.md", "whether the tool was entered. The spelling is stable."))

	var reasons []string
	for _, m := range regexp.MustCompile(`[Rr]eason[A-Za-z]+\s+= "([a-z_]+)"`).FindAllStringSubmatch(text(t, "../internal/deadletter/reasons.go"), -1) {
		reasons = append(reasons, m[1])
	}
	require.Greater(t, len(reasons), 5)
	require.ElementsMatch(t, reasons, itemsOf(t, "wire-contract.md", "\nReasons:"))

	require.ElementsMatch(t, append(headersOf(t, "../idempotency/record.go"), "Nats-Sequence"), column(t, "wire-contract.md", "| header | on | holds |", 1))
	require.ElementsMatch(t, headersOf(t, "../internal/deadletter/reasons.go"), itemsOf(t, "wire-contract.md", "\nHeaders of a dead letter:"))
	require.ElementsMatch(t, headersOf(t, "../internal/deferral/headers.go"), itemsOf(t, "wire-contract.md", "Added headers:"))
	require.Contains(t, text(t, "wire-contract.md"), "`"+subjects.HeaderReply+"`")
}

func TestContractHasTheMessageIDOfTheCode(t *testing.T) {
	t.Parallel()
	require.Equal(t, "3:app4:chat0:4:turn", string(events.JoinIDs("app", "chat", "", "turn")), "as the page describes it")
	turn := fenced(t, "wire-contract.md", "json")[0]
	e, err := events.DecodeTurn([]byte(turn.text))
	require.NoError(t, err)
	require.Equal(t, events.TurnID{App: "default", Chat: "hello", Run: "run-7", Turn: "hello-1"}, e.TurnID)
	require.Len(t, events.MsgID(events.KindStructuredOutputReady, e.TurnID, events.Fingerprint(e)), 22+16)
}

// described collects the names of metrics as they are registered.
type described struct {
	prometheus.Registerer

	names []string
}

func (d *described) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc, 100)
	c.Describe(ch)
	close(ch)
	for desc := range ch {
		d.names = append(d.names, regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(desc.String())[1])
	}
	return nil
}

func TestEveryMetricIsExplained(t *testing.T) {
	t.Parallel()
	all := &described{}
	nc := oneturntest.NewServer(t).Connect()
	_, err := oneturn.NewWorker(nc, oneturn.Config{Workflows: "../examples/01-hello/workflows", Registry: all})
	require.NoError(t, err)
	named := leads(t, "operations.md", "### Metrics")
	require.ElementsMatch(t, all.names, named)
	for _, label := range []string{"workflow", "tool", "outcome", "reason"} {
		require.Contains(t, text(t, "operations.md"), "`"+label+"`")
	}
}

func TestLogMessagesThatThePageNamesAreWritten(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, pattern := range []string{"../*.go", "../internal/worker/*.go", "../handlers/*.go", "../internal/*/*.go", "../embedded/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			source.WriteString(text(t, file))
		}
	}
	for _, message := range leads(t, "operations.md", "### Logs") {
		require.Contains(t, source.String(), `"`+message, message)
	}
}

func TestPagesNameTheEffectsAndTiersOfTheCode(t *testing.T) {
	t.Parallel()
	for page, header := range map[string]string{
		"guarantees.md": "| effect | after the death of its worker the tool is | for tools that | default of |",
		"manifests.md":  "| effect | what may happen when the worker dies inside the tool |",
	} {
		effects := slices.Sorted(slices.Values(column(t, page, header, 1)))
		require.Equal(t, []string{"idempotent", "keyed", "none", "replay", "unsafe"}, effects)
	}
	var tiers []string
	for _, m := range regexp.MustCompile(`Tier\{"([a-z-]+)"`).FindAllStringSubmatch(text(t, "../provision/durability_tier.go"), -1) {
		tiers = append(tiers, m[1])
	}
	require.ElementsMatch(t, tiers, column(t, "guarantees.md", "| tier | how | survives | may lose |", 1))
}
