package oneturntest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/memhost"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// Host stands for the worker of one turn: it tests a tool that asks people, displays content or
// runs steps, in memory, without a server and without waiting. People answer by a script
// ([Host.Answer], [Host.Expire]). The zero value is ready.
//
// It parks at every question without an answer in the script: [CallTool] then returns
// tool.ErrParked, as in a worker that parks the turn. Answer the question and call the tool again:
// it runs from its beginning, gets the answers so far and finds the steps that are done. Use a new
// Host for the next turn.
//
// As in a worker, a name stands for one question or surface of a run, and a tool that is called
// again after it got its last answer, as if its worker had died there, ends as interrupted: the
// code after the answer does not run twice, see [Host.Reenterable].
type Host struct {
	// Reenterable is set for a tool whose effect is none or idempotent instead of replay: it may
	// be called again at any point.
	Reenterable bool
	// Turn is the key of the turn. Defaults to "turn".
	Turn string
	// Variables are the context variables of the chat. A call that succeeds changes them; numbers
	// are json.Number then.
	Variables map[string]any

	memory memhost.Host
}

// Asked is a question that a tool has asked, and its outcome. The fields up to Secret are what
// the tool asked.
type Asked struct {
	ID        string // its name, or its number as text
	Name      string
	Tool      string // id of the UI tool
	Input     bool   // asked by tool.Input
	Component string
	Display   string
	Payload   json.RawMessage
	Schema    json.RawMessage
	Timeout   time.Duration
	Secret    bool

	Open   bool            // neither answered nor expired
	Answer json.RawMessage // nil unless answered
	Err    error           // of a question that expired
}

// Shown is a surface that a tool has displayed.
type Shown struct {
	ID        string // "s:" and its name, or "s" and its number
	Name      string
	Tool      string // id of the UI tool
	Component string
	Display   string
	Payload   json.RawMessage
	Dismissed bool
}

// Progress is one progress report of a tool.
type Progress struct {
	Percent float64 // less than 0 if unknown
	Message string
}

// Answer adds an answer to the script, before or after its question is asked. The question is
// the name of one question or its number as text, or the id of a UI tool, whose questions take the
// answers in order. The value becomes JSON, completed by the question's schema as in a worker; a
// value that does not match it, or has no JSON form, makes the tool's Ask fail, and with it the
// test.
func (h *Host) Answer(question string, value any) { h.memory.Answer(question, value) }

// Expire ends the time for an answer. The question is as in [Host.Answer].
func (h *Host) Expire(question string) { h.memory.Expire(question) }

// Asked returns the questions so far, in the order in which they were first asked.
func (h *Host) Asked() []Asked {
	asked := h.memory.Asked()
	list := make([]Asked, 0, len(asked))
	for _, a := range asked {
		q := a.Question
		list = append(list, Asked{
			ID: a.ID, Name: q.Name, Tool: q.Tool, Input: q.Input, Component: q.Component, Display: q.Display, Payload: q.Payload, Schema: q.Schema,
			Timeout: q.Timeout, Secret: q.Secret, Open: a.Open, Answer: a.Answer, Err: a.Err,
		})
	}
	return list
}

// Shown returns the surfaces so far, in the order in which they were first displayed.
func (h *Host) Shown() []Shown {
	shown := h.memory.Shown()
	list := make([]Shown, 0, len(shown))
	for _, s := range shown {
		list = append(list, Shown{
			ID: s.ID, Name: s.Surface.Name, Tool: s.Surface.Tool, Component: s.Surface.Component, Display: s.Surface.Display,
			Payload: s.Surface.Payload, Dismissed: s.Dismissed,
		})
	}
	return list
}

// Reported returns the progress that all runs have reported.
func (h *Host) Reported() []Progress {
	reported := h.memory.Reported()
	list := make([]Progress, 0, len(reported))
	for _, p := range reported {
		list = append(list, Progress{Percent: p.Percent, Message: p.Message})
	}
	return list
}

// Runs returns how often the tool was called.
func (h *Host) Runs() int { return h.memory.Runs() }

// CallTool calls the function of a Go tool as a worker does, with h as its host. In the function,
// tool.Info returns app "app", chat "chat", the turn of h and an epoch that counts the runs. A
// panic becomes an error.
func CallTool[In, Out any](ctx context.Context, h *Host, fn func(context.Context, In) (Out, error), in In) (Out, error) {
	if err := h.start(); err != nil {
		var none Out
		return none, err
	}
	defer h.end()
	return memhost.CallTool(ctx, &h.memory, fn, in)
}

// start passes the settings of h to the memory of the turn.
func (h *Host) start() error {
	variables, err := object(h.Variables)
	if err != nil {
		return fmt.Errorf("oneturntest: Host.Variables: %w", err)
	}
	h.memory.Reenterable, h.memory.Turn, h.memory.Variables = h.Reenterable, h.Turn, variables
	return nil
}

func (h *Host) end() { h.Variables = h.memory.Variables }

// object returns the value tree of a struct or map.
func object(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%T has no JSON form: %w", v, err)
	}
	tree, err := events.Decode(data)
	if err != nil {
		return nil, err
	}
	fields, isObject := tree.(map[string]any)
	if !isObject && tree != nil {
		return nil, fmt.Errorf("%T is not a JSON object: use a struct or a map", v)
	}
	return fields, nil
}

// PythonTool names a function of a workflow folder for [CallPython].
type PythonTool struct {
	Root        string   // folder of workflow folders, as --workflows of a worker
	Workflow    string   // name of the workflow folder
	File        string   // in its tools folder, for example "order.py"
	Function    string   // name of the function
	Interpreter string   // "": .venv of the workflow or of Root, $VIRTUAL_ENV, python3
	Env         []string // variables of this process that the tool gets: NAME or PREFIX_*
}

// CallPython calls a Python tool as a worker does, in a process of its interpreter, with h as its
// host, and returns its result. Args (a struct or map with a JSON form) are the arguments of the
// function: a function that takes chat_id or workflow_name needs them here, because only a worker
// adds them. The process ends with the call.
func CallPython(ctx context.Context, h *Host, t PythonTool, args any) (json.RawMessage, error) {
	arguments, err := object(args)
	if err != nil {
		return nil, fmt.Errorf("call %s: arguments: %w", t.Function, err)
	}
	if err := h.start(); err != nil {
		return nil, err
	}
	defer h.end()
	pool := python.NewPool(python.Options{Root: t.Root, Interpreter: t.Interpreter, Env: slices.Clone(t.Env), Size: 1})
	defer func() { _ = pool.Close(context.WithoutCancel(ctx)) }() // the result counts
	call := h.memory.Call(t.Function)
	call.Workflow, call.Args = t.Workflow, arguments
	result, err := pool.Tool(t.Workflow, t.File, t.Function).Invoke(ctx, call)
	h.memory.Keep(result)
	return result.Value, err
}
