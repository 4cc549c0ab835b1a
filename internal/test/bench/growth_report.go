package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// The table and the JSON of `bench growth`: one row for each figure at one size, with its baseline and its aim.

// growthRow is one figure at one size.
type growthRow struct {
	Measurement string   `json:"measurement"`
	Figure      string   `json:"figure"`
	Unit        string   `json:"unit"`
	Load        string   `json:"load"`
	Value       float64  `json:"value"`
	Baseline    *float64 `json:"baseline"`
	ComparedTo  string   `json:"compared_to,omitempty"` // what the baseline is
	Aim         string   `json:"aim,omitempty"`
	Met         *bool    `json:"met,omitempty"`
}

// comparedWith sets what the figure is compared with.
func (r growthRow) comparedWith(what string, baseline float64) growthRow {
	r.ComparedTo, r.Baseline = what, &baseline
	return r
}

// aim is what the figure should be.
func (r growthRow) aim(text string, met bool) growthRow {
	r.Aim, r.Met = text, &met
	return r
}

func (r growthRow) ratio() string {
	if r.Baseline == nil || *r.Baseline == 0 {
		return "-"
	}
	return strconv.FormatFloat(r.Value / *r.Baseline, 'f', 2, 64)
}

// verdict is the aim and whether it is met.
func (r growthRow) verdict() string {
	switch {
	case r.Met == nil:
		return ""
	case *r.Met:
		return r.Aim + ": met"
	}
	return r.Aim + ": missed"
}

func (g *growth) add(rows ...growthRow) { g.rows = append(g.rows, rows...) }

// growthReport is all of a run, as it is written as JSON.
type growthReport struct {
	Machine     machine     `json:"machine"`
	Tier        string      `json:"tier"`
	TierText    string      `json:"tier_text"`
	Command     string      `json:"command"`
	LoadAtStart string      `json:"load_at_start"`
	LoadAtEnd   string      `json:"load_at_end"`
	Rows        []growthRow `json:"rows"`
}

// section implements written: some measurements have a separate table.
func (r growthReport) section() (name, command string) {
	own := map[string]string{
		measureWaiting: "questions", measureParked: "questions", measureFloods: measureFloods, measureSweep: measureSweep,
	}
	for i, x := range r.Rows {
		of := cmp.Or(own[x.Measurement], growthArg)
		if i > 0 && of != name {
			return growthArg, r.Command
		}
		name = of
	}
	return cmp.Or(name, growthArg), r.Command
}

// table implements written.
func (r growthReport) table(w io.Writer) error {
	fmt.Fprintf(w, "machine   %s\n", r.Machine)
	fmt.Fprintf(w, "versions  %s\n", r.Machine.versions())
	fmt.Fprint(w, tierLine(r.Tier, r.TierText))
	fmt.Fprintf(w, "run       each measured once, server, workers and publisher in processes; load %s, then %s\n\n", r.LoadAtStart, r.LoadAtEnd)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "measurement\tfigure\tunit\tload\tproduct\tbaseline\tof\tratio\taim")
	for _, x := range r.Rows {
		baseline := "-"
		if x.Baseline != nil {
			baseline = figure(*x.Baseline)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", x.Measurement, x.Figure, x.Unit, x.Load, figure(x.Value), baseline, or(x.ComparedTo, "-"), x.ratio(), or(x.verdict(), "-"))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// figure writes a number with about three digits.
func figure(v float64) string {
	digits := 0
	switch {
	case v < 10:
		digits = 2
	case v < 100:
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}
