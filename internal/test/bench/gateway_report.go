package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// The table and the JSON of `bench gateway`: one row for each figure, with the baseline of the same run and the aim.

// gatewayFigure is what a row is about.
type gatewayFigure struct {
	name, unit string
	aim        float64 // 0 for none
	atLeast    bool    // the figure should be as large, not as small
}

// Names of figures.
const (
	figureRate    = "deliveries"
	figureCPU     = "CPU of the process"
	figureAllocs  = "allocations"
	figureP50     = "published to received, p50"
	figureP99     = "published to received, p99"
	figureFirst50 = "connected to first event, p50"
	figureFirst99 = "connected to first event, p99"
	figureWhole99 = "connected to whole history, p99"
	figureRSS     = "resident, each"
	figureHeap    = "heap, each"
	figureStacks  = "stacks, each"
	figureTotal   = "resident, the process"
)

// figureOf returns a figure by its name.
func figureOf(name string) gatewayFigure {
	all := []gatewayFigure{
		{figureRate, "/s", 100_000, true},
		{figureCPU, "µs/delivery", 0, false},
		{figureAllocs, "/delivery", 0, false},
		{figureP50, "ms", 0, false},
		{figureP99, "ms", 50, false},
		{figureFirst50, "ms", 0, false},
		{figureFirst99, "ms", 100, false},
		{figureWhole99, "ms", 0, false},
		{figureRSS, "KiB", 60, false},
		{figureHeap, "KiB", 0, false},
		{figureStacks, "KiB", 0, false},
		{figureTotal, "MiB", 700, false},
	}
	return all[slices.IndexFunc(all, func(f gatewayFigure) bool { return f.name == name })]
}

// gatewayRows are the values of all repeats.
type gatewayRows struct {
	order  []gatewayRow
	values map[string][]float64
}

// gatewayRow is a figure of both arms.
type gatewayRow struct {
	Load    string    `json:"load"`
	Figure  string    `json:"figure"`
	Unit    string    `json:"unit"`
	Gateway *spreadOf `json:"gateway"`
	Relay   *spreadOf `json:"plain_subscriber"`
	Ratio   *spreadOf `json:"ratio"`
	Aim     float64   `json:"aim,omitempty"`
	Met     *bool     `json:"met,omitempty"`
	of      gatewayFigure
}

func (r *gatewayRows) add(arm, on, figure string, value float64) {
	f := figureOf(figure)
	key := on + "\n" + f.name + "\n"
	if r.values == nil {
		r.values = map[string][]float64{}
	}
	if len(r.values[key+armGateway])+len(r.values[key+armRelay]) == 0 {
		r.order = append(r.order, gatewayRow{Load: on, Figure: f.name, Unit: f.unit, of: f})
	}
	r.values[key+arm] = append(r.values[key+arm], value)
}

// summarised returns the rows with their medians.
func (r *gatewayRows) summarised() []gatewayRow {
	for i := range r.order {
		row := &r.order[i]
		key := row.Load + "\n" + row.Figure + "\n"
		ours, base := r.values[key+armGateway], r.values[key+armRelay]
		row.Gateway, row.Relay, row.Ratio = summarise(ours), summarise(base), summarise(ratios(ours, base))
		if row.of.aim > 0 {
			met := row.Gateway.Median <= row.of.aim
			if row.of.atLeast {
				met = row.Gateway.Median >= row.of.aim
			}
			row.Aim, row.Met = row.of.aim, &met
		}
	}
	return r.order
}

// gatewayReport is all of a run, as it is written as JSON.
type gatewayReport struct {
	Machine     machine      `json:"machine"`
	Command     string       `json:"command"`
	Repeats     int          `json:"repeats"`
	LoadAtStart string       `json:"load_at_start"`
	LoadAtEnd   string       `json:"load_at_end"`
	Rows        []gatewayRow `json:"rows"`
}

// section implements written: the table is not part of a document.
func (r gatewayReport) section() (name, command string) { return gatewayArg, r.Command }

// table implements written.
func (r gatewayReport) table(w io.Writer) error {
	fmt.Fprintf(w, "machine   %s\n", r.Machine)
	fmt.Fprintf(w, "versions  %s\n", r.Machine.versions())
	fmt.Fprintf(w, "run       median of %d (smallest–largest); server, clients and gateway in processes; load %s, then %s\n\n", r.Repeats, r.LoadAtStart, r.LoadAtEnd)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "load\tfigure\tunit\tgateway\tplain subscriber\tratio\taim")
	for i := range r.Rows {
		x := &r.Rows[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", x.Load, x.Figure, x.Unit, spreadText(x.Gateway), spreadText(x.Relay), spreadText(x.Ratio), x.verdict())
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

func spreadText(s *spreadOf) string {
	switch {
	case s == nil:
		return "-"
	case s.Min == s.Max:
		return figure(s.Median)
	}
	return figure(s.Median) + " (" + figure(s.Min) + "–" + figure(s.Max) + ")"
}

func (r *gatewayRow) verdict() string {
	if r.Met == nil {
		return "-"
	}
	sign, met := "≤ ", ": met"
	if r.of.atLeast {
		sign = "≥ "
	}
	if !*r.Met {
		met = ": missed"
	}
	return sign + figure(r.Aim) + met
}
