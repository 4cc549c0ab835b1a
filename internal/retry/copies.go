package retry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
)

// RecordCopies is the kind under which copies that are too large for a record become a blob.
const RecordCopies = "copies"

// Copies are the results that a retry keeps, and the nested programs that it continues. The zero value has none; methods take nil.
type Copies struct {
	Calls    []Copy                     `json:"calls"`
	Programs map[string]json.RawMessage `json:"programs,omitempty"` // by the prefix of the ids of their calls
	Planner  any                        `json:"planner,omitempty"`  // what the planner of the program has replied, nil if it has none
}

// Copy is how a call ended in an earlier turn, with its arguments and output.
type Copy struct {
	Call       string      `json:"call"` // id in the program of the turn, with those around it
	From       string      `json:"from"` // tool_call_id
	Seq        uint64      `json:"seq"`  // of its response: of a race, the lowest one has won
	Success    bool        `json:"success"`
	Code       events.Code `json:"code,omitempty"`
	Content    string      `json:"content"`
	Arguments  any         `json:"arguments"`
	Output     any         `json:"output"` // nil if it failed
	Attempts   int         `json:"attempts"`
	DurationMS int64       `json:"duration_ms"`
}

// Copies returns what the retry keeps: the results of the calls that the outline has as copied, with arguments and outputs.
func (p *Past) Copies(o *Outline) (*Copies, error) {
	c := &Copies{Calls: []Copy{}, Programs: map[string]json.RawMessage{}}
	for i := range o.Calls {
		of := &o.Calls[i]
		if !of.Copied {
			if nested := p.program(of.Call + "#"); nested != nil {
				data, err := json.Marshal(nested)
				if err != nil {
					return nil, fmt.Errorf("encode a program of the turn to retry: %w", err)
				}
				c.Programs[of.Call+"#"] = data
			}
			continue
		}
		if copied := p.copies.Call(of.Call); copied != nil {
			c.Calls = append(c.Calls, *copied)
			continue
		}
		copied, err := p.copyOf(of.Call)
		if err != nil {
			return nil, err
		}
		c.Calls = append(c.Calls, copied)
	}
	var err error
	c.Planner, err = p.PlannerReply()
	return c, err
}

// copyOf returns the copy of a call that has run in the turn.
func (p *Past) copyOf(id string) (Copy, error) {
	own := p.calls[id]
	r := own.end
	c := Copy{
		Call: id, From: r.ToolCallID, Seq: own.seq, Success: r.Success, Code: r.FailureCode(), Content: r.Content, Attempts: r.Attempts, DurationMS: r.DurationMS,
	}
	var err error
	if own.called != nil {
		if c.Arguments, err = p.open(id, events.KindToolCall, own.called.Payload.ToolArgs); err != nil {
			return c, err
		}
	}
	if r.Code == "" { // else the payload describes the failure
		c.Output, err = p.open(id, events.KindToolResponse, r.Payload)
	}
	return c, err
}

// Call returns the copy of a call, nil if there is none.
func (c *Copies) Call(id string) *Copy {
	if c == nil {
		return nil
	}
	for i := range c.Calls {
		if c.Calls[i].Call == id {
			return &c.Calls[i]
		}
	}
	return nil
}

// program returns a nested program, nil if there is none or it cannot be read.
func (c *Copies) program(prefix string) *flow.Program {
	p, err := c.Program(prefix)
	if err != nil {
		return nil
	}
	return p
}

// Program returns a nested program, nil if there is none.
func (c *Copies) Program(prefix string) (*flow.Program, error) {
	if c == nil || c.Programs[prefix] == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	p, err := flow.DecodeProgram(c.Programs[prefix])
	if err != nil {
		return nil, fmt.Errorf("program of call %s: %w", strings.TrimSuffix(prefix, "#"), err)
	}
	return p, nil
}

// Encode returns the copies as the JSON of a text, which is how they are stored: however many values are in them, the record
// has one.
func (c *Copies) Encode() (json.RawMessage, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode what a retry keeps: %w", err)
	}
	return events.JSONOf(string(data)), nil
}

var errNoText = errors.New("they are not a text")

// Decode is the inverse of [Copies.Encode], for the text that the JSON has.
func Decode(stored any) (*Copies, error) {
	text, ok := stored.(string)
	if !ok {
		return nil, fmt.Errorf("read what a retry keeps: %w", errNoText)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	c := &Copies{}
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("read what a retry keeps: %w", err)
	}
	return c, nil
}

// Mark notes in the event of a program which of its calls are copied. Prefix is the one of the ids of its calls.
func (c *Copies) Mark(payload *events.PlanPayload, prefix string) {
	for i := range payload.Steps {
		if copied := c.Call(prefix + payload.Steps[i].Call); copied != nil {
			payload.Steps[i].Copied = &events.CopiedCall{From: copied.From, Success: copied.Success, Code: copied.Code}
		}
	}
}
