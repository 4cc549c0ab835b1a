package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// The table and the JSON of all figures: for each point and figure the spread of the product and of both baselines, and
// the ratios of pairs of the same repeat.

// row is one figure of one point, next to its baselines.
type row struct {
	Figure string `json:"figure"`
	Unit   string `json:"unit"`
	point
	Tier    string    `json:"tier"`
	Product *spreadOf `json:"product"`
	Raw     *spreadOf `json:"raw"`
	Usual   *spreadOf `json:"usual"`
	VsRaw   *spreadOf `json:"product_to_raw"`   // of pairs of the same repeat
	VsUsual *spreadOf `json:"product_to_usual"` // of pairs of the same repeat
}

// metric is a figure that can be reported, and whether the table shows it at every point or
// only where the load is headline: the JSON holds all.
type metric struct {
	name, title, unit string
	digits            int
	headlineOnly      bool
}

const headline = 256

var metrics = []metric{ //nolint:gochecknoglobals // a table
	{"turns_per_s", "throughput", "turns/s", 0, false},
	{"p50_ms", "latency p50", "ms", 2, false},
	{"p99_ms", "latency p99", "ms", 2, false},
	{"cpu_us_process", "CPU, all", "µs/turn", 0, true},
	{"cpu_us_worker", "CPU, worker", "µs/turn", 0, true},
	{"cpu_us_server", "CPU, server", "µs/turn", 0, true},
	{"allocs_worker", "allocations, worker", "/turn", 0, true},
	{"bytes_worker", "bytes, worker", "B/turn", 0, true},
	{"idle_cpu_percent", "idle worker, CPU", "% of a core", 2, false},
	{"idle_rss_mib", "idle worker, RSS", "MiB", 1, false},
}

// results are the figures of each point and arm, one for each repeat.
type results map[point]map[string][]figures

func (r results) add(p point, arm string, f figures) {
	if r[p] == nil {
		r[p] = map[string][]figures{}
	}
	r[p][arm] = append(r[p][arm], f)
}

func (r results) rows(points []point, tier string) []row {
	var rows []row
	for _, m := range metrics {
		for _, p := range points {
			values := func(arm string) []float64 {
				var out []float64
				for _, f := range r[p][arm] {
					if v, ok := f[m.name]; ok {
						out = append(out, v)
					}
				}
				return out
			}
			of, base, other := values(product), values(raw), values(usual)
			if len(of) == 0 {
				continue
			}
			rows = append(rows, row{
				Figure: m.name, Unit: m.unit, point: p, Tier: tier,
				Product: summarise(of), Raw: summarise(base), Usual: summarise(other),
				VsRaw: summarise(ratios(of, base)), VsUsual: summarise(ratios(of, other)),
			})
		}
	}
	return rows
}

// report is all of a run, as it is written as JSON.
type report struct {
	Machine  machine  `json:"machine"`
	Tier     string   `json:"tier"`
	TierText string   `json:"tier_text"`
	Settings settings `json:"settings"`
	Rows     []row    `json:"rows"`
}

// settings are what a reader needs to make the run again.
type settings struct {
	Repeats     int    `json:"repeats"`
	Turns       int    `json:"turns"`
	WarmTurns   int    `json:"warm_turns"`
	PacedFor    string `json:"paced_for"`
	Transport   string `json:"transport"`
	Command     string `json:"command"`
	LoadAtStart string `json:"load_at_start,omitempty"`
	LoadAtEnd   string `json:"load_at_end,omitempty"`
}

func (r report) section() (name, command string) { return "bench", r.Settings.Command }

// table writes the report for people.
func (r report) table(w io.Writer) error {
	fmt.Fprintf(w, "machine   %s\n", r.Machine)
	fmt.Fprintf(w, "versions  %s\n", r.Machine.versions())
	fmt.Fprint(w, tierLine(r.Tier, r.TierText))
	fmt.Fprintf(w, "run       median of %d, in brackets the least and the greatest; %d turns after %d to warm up; embedded worker connects by %s; load %s, then %s\n",
		r.Settings.Repeats, r.Settings.Turns, r.Settings.WarmTurns, r.Settings.Transport, r.Settings.LoadAtStart, r.Settings.LoadAtEnd)
	fmt.Fprintf(w, "raw       consume, two pipelined publishes, ack: no claim, nothing decoded\n")
	fmt.Fprintf(w, "usual     claim, call, response, completion, double ack, each awaited, with nats.go: nothing decoded\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "figure\tunit\twhere\tpayload\tload\tproduct\traw\tusual\tproduct/raw\tproduct/usual")
	for _, x := range r.Rows {
		m := metricOf(x.Figure)
		if m.title == "" || m.headlineOnly && (x.Kind != throughput || x.InFlight != headline) {
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.title, m.unit, x.Topology, x.Payload, x.load(),
			x.Product.median(m.digits), x.Raw.median(m.digits), x.Usual.median(m.digits), x.VsRaw.ratio(), x.VsUsual.ratio())
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

func metricOf(name string) metric {
	for _, m := range metrics {
		if m.name == name {
			return m
		}
	}
	return metric{}
}

func (p point) load() string {
	switch p.Kind {
	case latency:
		return strconv.Itoa(p.Rate) + "/s"
	case idle:
		return "none"
	}
	return strconv.Itoa(p.InFlight) + " in flight"
}

func (s *spreadOf) median(digits int) string {
	if s == nil {
		return "-"
	}
	return strconv.FormatFloat(s.Median, 'f', digits, 64)
}

func (s *spreadOf) ratio() string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", s.Median, s.Min, s.Max)
}
