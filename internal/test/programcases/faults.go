package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/internal/failpoint"
)

// point is how a point of the cases is reached with the failpoints of workers. All steps of a program pass the same
// failpoint, so the hit is counted.
type point struct {
	failpoint string
	perStep   bool // hit once for each step, in the order of the program
	planner   bool // hit for the call of the planner too
}

// points are the points of the cases but in_tool, which is reached by the tools themselves.
var points = map[string]point{ //nolint:gochecknoglobals // a table
	"after_claim":     {failpoint: failpoint.AfterClaim},
	"after_planner":   {failpoint: failpoint.StepResponse}, // the write of the response of its call
	"after_program":   {failpoint: failpoint.AfterProgram},
	"after_call":      {failpoint: failpoint.AfterStepCall, perStep: true},
	"after_tool":      {failpoint: failpoint.AfterStep, perStep: true},
	"write_response":  {failpoint: failpoint.StepResponse, perStep: true, planner: true},
	"after_response":  {failpoint: failpoint.AfterStepResponse, perStep: true},
	"before_response": {failpoint: failpoint.AfterTool}, // of the turn: its tool is the program
	"after_end":       {failpoint: failpoint.AfterFinish},
}

// failpoints returns what ONETURN_FAILPOINTS has to be for the faults of a case, or why that is not possible.
func (c *Case) failpoints() (value, why string) {
	var parts []string
	for _, f := range c.Faults {
		switch {
		case f.At == "in_tool" && f.Do == "kill":
			continue
		case f.Do != "kill" && f.Do != "drop_ack", f.Do == "drop_ack" && f.At != "write_response", f.After != nil, f.Epoch > 1:
			return "", fmt.Sprintf("the runner cannot do %s at %s of epoch %d", f.Do, f.At, f.Epoch)
		case !failpoint.Enabled:
			return "", "built without -tags failpoints"
		}
		p, known := points[f.At]
		if !known {
			return "", "no failpoint for " + f.At
		}
		hit := 1
		if p.perStep {
			if hit = slices.Index(c.stepIDs(), f.Call) + 1; hit == 0 {
				return "", "no step " + f.Call + " in the program of the case"
			}
		}
		if p.planner && c.needs("planner") {
			hit++
		}
		parts = append(parts, p.failpoint+"="+f.Do+"@"+strconv.Itoa(hit))
	}
	return strings.Join(parts, ";"), ""
}

// stepIDs returns the ids of the calls in the program that the case has, in its order.
func (c *Case) stepIDs() (ids []string) {
	var plan struct {
		Calls []json.RawMessage `json:"calls"`
	}
	if json.Unmarshal(c.Plan, &plan) == nil {
		for i := range plan.Calls {
			ids = append(ids, strconv.Itoa(i))
		}
	}
	var request struct {
		Plan struct {
			Steps []struct {
				ID       string `json:"id"`
				Parallel struct {
					Steps []json.RawMessage `json:"steps"`
				} `json:"parallel"`
			} `json:"steps"`
		} `json:"plan"`
	}
	if json.Unmarshal(c.Orchestrate, &request) != nil {
		return ids
	}
	for i, s := range request.Plan.Steps {
		id := s.ID
		if id == "" {
			id = fmt.Sprintf("step_%d", i+1)
		}
		if len(s.Parallel.Steps) == 0 {
			ids = append(ids, id)
		}
		for child := range s.Parallel.Steps {
			ids = append(ids, fmt.Sprintf("%s[%d]", id, child))
		}
	}
	return ids
}

// leftOut returns why the runner cannot run the case, "" if it can.
func (c *Case) leftOut() string {
	_, why := c.failpoints()
	return why
}
