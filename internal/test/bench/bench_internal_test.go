package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/oneturntest"
)

// TestMain lets the test binary be the child that spawn starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childArg {
		if err := child(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1) //nolint:forbidigo // this is the main function of the child
		}
		return
	}
	oneturntest.VerifyNoLeaks(m)
}

func TestBriefRunPrintsEachFigureNextToItsBaselinesWithItsTier(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bench.json")
	var out bytes.Buffer
	err := run(t.Context(), []string{
		"-repeats=1", "-turns=100", "-warm=20", "-inflight=256", "-rates=1000", "-paced=100ms", "-idle=10ms", "-payloads=flat",
		"-store", t.TempDir(), "-json", file,
	}, &out, io.Discard)
	require.NoError(t, err)
	require.Contains(t, out.String(), "tier      embedded (")
	require.Contains(t, out.String(), "256 in flight")

	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal(data, &r))
	figures := map[string]bool{}
	for _, x := range r.Rows {
		figures[x.Figure+" "+x.Topology] = true
		require.Equal(t, "embedded", x.Tier, x.Figure)
		for name, s := range map[string]*spreadOf{"product": x.Product, "raw": x.Raw, "usual": x.Usual} {
			require.NotNil(t, s, "%s has no figure of %s", x.Figure, name)
			if x.Kind != idle {
				require.Positive(t, s.Median, "%s of %s", x.Figure, name)
			}
		}
	}
	for _, want := range []string{
		"turns_per_s embedded", "turns_per_s processes", "p50_ms embedded", "p99_ms processes",
		"allocs_worker processes", "bytes_worker processes", "idle_cpu_percent processes",
	} {
		require.True(t, figures[want], want)
	}
	require.NotEmpty(t, r.Machine.NATSServer)
}

// TestEachMeasurementOfGrowthFillsItsRows makes the measurements side by side: most of their time
// is waiting, and the figures of a brief run mean nothing anyway.
func TestEachMeasurementOfGrowthFillsItsRows(t *testing.T) {
	t.Parallel()
	together := []string{"retained", "restart", "readers"} // on one journal
	groups := [][]string{together}
	for _, m := range slices.Backward(measurements()) { // the last ones wait most
		if !slices.Contains(together, m.name) {
			groups = append(groups, []string{m.name})
		}
	}
	for _, names := range groups {
		t.Run(strings.Join(names, ","), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "growth.json")
			require.NoError(t, runGrowth(t.Context(), []string{"-brief", "-only", strings.Join(names, ","), "-store", dir, "-json", file}, io.Discard, io.Discard))

			data, err := os.ReadFile(file)
			require.NoError(t, err)
			var r growthReport
			require.NoError(t, json.Unmarshal(data, &r))
			require.Equal(t, "embedded", r.Tier)
			baselines := map[string]bool{}
			for _, x := range r.Rows {
				if x.Measurement != "idle" { // so short that no time may be used
					require.Positive(t, x.Value, "%s, %s", x.Measurement, x.Figure)
				}
				baselines[x.Measurement] = baselines[x.Measurement] || x.Baseline != nil
			}
			require.Len(t, baselines, len(names))
			for _, name := range names {
				with, measured := baselines[name]
				require.True(t, measured, name)
				require.Equal(t, name != "workflows", with, name)
			}
		})
	}
}

func TestTableOfGrowthTakesItsPlaceInTheDocument(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	document := filepath.Join(dir, "page.md")
	require.NoError(t, os.WriteFile(document, []byte("before\n<!-- begin: growth -->\nstale\n<!-- end: growth -->\nafter\n"), 0o600))
	var out bytes.Buffer
	require.NoError(t, runGrowth(t.Context(), []string{"-brief", "-only=idle", "-store", dir, "-write", document}, &out, io.Discard))
	page, err := os.ReadFile(document)
	require.NoError(t, err)
	require.Contains(t, string(page), out.String())
	require.NotContains(t, string(page), "stale")
	require.True(t, strings.HasPrefix(string(page), "before\n<!-- begin: growth -->\n`go run ./internal/test/bench growth -brief=true -only=idle`:\n\n```text\n"), string(page))
	require.True(t, strings.HasSuffix(string(page), "```\n<!-- end: growth -->\nafter\n"), string(page))
}

func TestAimIsMetOrMissedNextToItsFigure(t *testing.T) {
	t.Parallel()
	row := growthRow{Value: 3}.comparedWith("raw", 2)
	require.Equal(t, "1.50", row.ratio())
	require.Empty(t, row.verdict())
	require.Equal(t, "≤ 4: met", row.aim("≤ 4", true).verdict())
	require.Equal(t, "≤ 2: missed", row.aim("≤ 2", false).verdict())
	require.Equal(t, "-", growthRow{Value: 3}.ratio())
}

func TestFairnessCountsAWorkerThatDidNothing(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 3, drained{owners: map[string]int{"a": 30, "b": 10}}.fairness(2), 1e-9)
	require.InDelta(t, 30, drained{owners: map[string]int{"a": 30}}.fairness(2), 1e-9)
}

func TestRetainedChatsAreWholeAndDistinct(t *testing.T) {
	t.Parallel()
	r := retained{turnsAChat: 3}
	turns := map[string]int{}
	for i := range 2 * chatsAtOnce * 3 {
		turns[r.id(i).Chat]++
	}
	require.Equal(t, 2*chatsAtOnce, r.complete(2*chatsAtOnce*3+5))
	for n := range 2 * chatsAtOnce {
		require.Equal(t, 3, turns[r.chat(n)])
	}
}

func TestProfileOfTheWorkersProcessIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cpu, mem := filepath.Join(dir, "cpu"), filepath.Join(dir, "mem")
	require.NoError(t, run(t.Context(), []string{
		"-turns=100", "-warm=20", "-topologies=processes", "-store", dir, "-cpuprofile", cpu, "-memprofile", mem,
	}, io.Discard, io.Discard))
	for _, file := range []string{cpu, mem} {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Positive(t, info.Size(), file)
	}
}

func TestPayloadsAreAboutOneKibibyteAndFitTheirModels(t *testing.T) {
	t.Parallel()
	for name, schemaOf := range map[string]func() (json.RawMessage, error){"flat": tools.SchemaOf[ticket], "nested": tools.SchemaOf[order]} {
		p, err := loadPayload(name)
		require.NoError(t, err)
		schema, err := schemaOf()
		require.NoError(t, err)
		m, err := model.CompileSchema(p.model, schema)
		require.NoError(t, err)
		_, faults := m.Check(p.data)
		require.Empty(t, faults, name)
		compact, err := json.Marshal(p.data)
		require.NoError(t, err)
		require.InDelta(t, 1024, len(compact), 64, name)
	}
}

func TestRatiosComeFromPairsOfOneRepeat(t *testing.T) {
	t.Parallel()
	p := point{Kind: throughput, Topology: embeddedTopology, Payload: "flat", InFlight: 1}
	found := results{}
	for i, v := range []float64{50, 10, 90} { // a neighbour slows down both arms of the second repeat
		found.add(p, product, figures{"turns_per_s": v})
		found.add(p, raw, figures{"turns_per_s": []float64{100, 20, 100}[i]})
	}
	rows := found.rows([]point{p}, "embedded")
	require.Len(t, rows, 1)
	require.Equal(t, &spreadOf{Median: 50, Min: 10, Max: 90}, rows[0].Product)
	require.Equal(t, &spreadOf{Median: 0.5, Min: 0.5, Max: 0.9}, rows[0].VsRaw)
	require.Nil(t, rows[0].VsUsual)
}

func TestUnsuccessfulResponseFailsTheMeasurement(t *testing.T) {
	t.Parallel()
	p, err := loadPayload("flat")
	require.NoError(t, err)
	_, response, err := p.outbound()
	require.NoError(t, err)
	require.NoError(t, succeeded(0, response))
	require.ErrorContains(t, succeeded(0, bytes.Replace(response, []byte(`"success":true`), []byte(`"success":false`), 1)), "did not succeed")
}

func TestQuantileInterpolates(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 2.5, quantile([]float64{1, 2, 3, 4}, 0.5), 1e-9)
	require.InDelta(t, 4, quantile([]float64{1, 2, 3, 4}, 1), 1e-9)
	require.InDelta(t, 7, quantile([]float64{7}, 0.99), 1e-9)
}

func TestWrongFlagsAreReportedTogether(t *testing.T) {
	t.Parallel()
	_, err := parseOptions([]string{"-topologies=moon", "-payloads=round", "-transport=pigeon"}, io.Discard)
	require.ErrorContains(t, err, "moon")
	require.ErrorContains(t, err, "round")
	require.ErrorContains(t, err, "pigeon")
	_, err = parseGrowth([]string{"-only=moon", "-sizes=0", "-workers="}, io.Discard)
	require.ErrorContains(t, err, "moon")
	require.ErrorContains(t, err, "-sizes")
	require.ErrorContains(t, err, "-workers")
	require.ErrorContains(t, replace("bench_internal_test.go", "no such", "", ""), "want a line")
}

func TestRunOfTheGatewayPrintsItsFiguresNextToThePlainSubscriber(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gateway.json")
	var out bytes.Buffer
	err := runGateway(t.Context(), []string{
		"-repeats=1", "-sockets=2", "-streams=2", "-deliveries=1000", "-rate=100", "-paced=100ms", "-opened=2", "-old=3", "-open=4", "-idle=0", "-rest=1ms",
		"-store", t.TempDir(), "-json", file,
	}, &out, io.Discard)
	require.NoError(t, err)
	require.Contains(t, out.String(), "2 AG-UI streams, 100/s")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var r gatewayReport
	require.NoError(t, json.Unmarshal(data, &r))
	for _, x := range r.Rows {
		require.NotNil(t, x.Gateway, "%s: %s", x.Load, x.Figure)
		require.NotNil(t, x.Relay, "%s: %s", x.Load, x.Figure)
	}
	require.Len(t, r.Rows, 2*5+3+4)
}

func TestClientOfTheGatewayNoticesAnEventThatIsMissingOrTwice(t *testing.T) {
	t.Parallel()
	for _, second := range []int{0, 2} {
		f := &frontends{left: make([]atomic.Int32, 3), arrived: make(chan struct{}, 3)}
		c := &client{of: f}
		require.NoError(t, c.event([]byte(`{"content":"`+mark(7, 0)+`"}`)), "an event of the history")
		require.NoError(t, c.event([]byte(`{"content":"`+mark(0, 1)+`"}`)))
		require.ErrorContains(t, c.event([]byte(`{"content":"`+mark(second, 1)+`"}`)), "want 1")
	}
}
