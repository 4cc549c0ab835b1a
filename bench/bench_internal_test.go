package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/tools"
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
	goleak.VerifyTestMain(m)
}

func TestBriefRunPrintsEachFigureBesideItsBaselinesWithItsTier(t *testing.T) {
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

func TestResponseThatIsNoSuccessFailsTheMeasurement(t *testing.T) {
	t.Parallel()
	p, err := loadPayload("flat")
	require.NoError(t, err)
	_, response, err := p.outbound()
	require.NoError(t, err)
	require.NoError(t, succeeded(response))
	require.ErrorContains(t, succeeded(bytes.Replace(response, []byte(`"success":true`), []byte(`"success":false`), 1)), "did not succeed")
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
}
