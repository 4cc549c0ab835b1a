package main

import "slices"

// spreadOf is what repeats of one figure come to.
type spreadOf struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// summarise returns nil for no values.
func summarise(values []float64) *spreadOf {
	if len(values) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	return &spreadOf{quantile(sorted, 0.5), sorted[0], sorted[len(sorted)-1]}
}

// quantile of sorted values, between two of them by their distance.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// ratios divides pairs of the same repeat: neighbours on the machine come and go, and a pair
// saw the same ones.
func ratios(values, base []float64) []float64 {
	var out []float64
	for i := range min(len(values), len(base)) {
		if base[i] > 0 {
			out = append(out, values[i]/base[i])
		}
	}
	return out
}
