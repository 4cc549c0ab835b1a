package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/excerpt"
)

// MaxRecord is how many bytes the record of a workflow has at most.
const MaxRecord = 8 << 10

// maxDescription bounds a description, in bytes; the rest of a longer one is cut off.
const maxDescription = 2 << 10

// Workflow is a workflow that workers have.
type Workflow struct {
	Name        string // as its folder or its Go tools spell it
	Description string // "" if the manifests have none
	Agents      int    // how many agents the manifests name
	Pools       []string
}

// record is what the bucket holds for a workflow and a pool.
type record struct {
	Workflow    string `json:"workflow_name"`
	Description string `json:"description"`
	Pool        string `json:"pool"`
	Agents      int    `json:"agents"`
}

// encode returns the record of a workflow that the workers of a pool have.
func encode(w Workflow, pool string) ([]byte, error) {
	r := record{Workflow: w.Name, Description: excerpt.Of(w.Description, maxDescription), Pool: pool, Agents: w.Agents}
	data, err := json.Marshal(r)
	if err == nil && len(data) > MaxRecord { // escapes take up to six times the space
		r.Description = ""
		data, err = json.Marshal(r)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("encode workflow %.80q: %w", w.Name, err)
	case w.Name == "":
		return nil, errors.New("a workflow without a name cannot be announced")
	case len(data) > MaxRecord:
		return nil, fmt.Errorf("workflow %.80q cannot be announced: its record has %d bytes, over the %d allowed: use a shorter name", w.Name, len(data), MaxRecord)
	}
	return data, nil
}

// decode reads a record. It reports false for what no worker writes.
func decode(data []byte) (r record, ok bool) {
	if len(data) > MaxRecord || json.Unmarshal(data, &r) != nil {
		return record{}, false
	}
	r.Description = excerpt.Of(r.Description, maxDescription)
	return r, r.Workflow != "" && r.Workflow == events.Name(r.Workflow) && r.Agents >= 0
}

// join returns the workflows of records, sorted by name. If the pools have different versions of one, the last record
// that was written counts.
func join(records []record) []Workflow {
	byName := map[string]*Workflow{}
	for _, r := range records { // in the order of their writes
		w := byName[r.Workflow]
		if w == nil {
			w = &Workflow{Name: r.Workflow}
			byName[r.Workflow] = w
		}
		w.Description, w.Agents = r.Description, r.Agents
		w.Pools = append(w.Pools, r.Pool)
	}
	list := make([]Workflow, 0, len(byName))
	for _, w := range byName {
		slices.Sort(w.Pools)
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b Workflow) int { return strings.Compare(a.Name, b.Name) })
	return list
}
