package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/tools"
)

// folders are workflow folders, each with one tool for the flat payload, which returns what it got. The zero value has none: the tools are bound in Go code.
type folders struct {
	Dir    string `json:"dir"`
	Count  int    `json:"count"`
	Python bool   `json:"python"` // the tool is Python, else Go
	Asks   bool   `json:"asks"`   // there is another Python tool, which asks
}

// of names the workflow of a turn.
func (f folders) of(turn int) string {
	if f.Count == 0 {
		return workflow
	}
	return fmt.Sprintf("%s%03d", workflow, turn%f.Count)
}

// tools are the Go tools that belong to the folders.
func (f folders) tools() []oneturn.Tool {
	switch {
	case f.Count == 0:
		return toolset()
	case f.Python:
		return nil
	}
	return []oneturn.Tool{oneturn.NewTool("echo", func(_ context.Context, t ticket) (ticket, error) { return t, nil }, oneturn.ToolOptions{})}
}

// write makes the folders.
func (f folders) write() error {
	schema, err := tools.SchemaOf[ticket]()
	if err != nil {
		return err
	}
	manifest := map[string]any{
		"agents": map[string]any{"flat": map[string]any{"model": "ticket"}},
		"models": map[string]any{"ticket": schema},
		"tools":  []any{map[string]any{"name": "echo", "agent": "flat", "kind": "go"}},
	}
	files := map[string][]byte{}
	if f.Asks {
		if err := f.addAsking(manifest, files); err != nil {
			return err
		}
	}
	if f.Python {
		bound, _ := manifest["tools"].([]any)
		bound[0] = map[string]any{"name": "echo", "agent": "flat", "file": "echo.py"}
		if files["echo.py"], err = echo(); err != nil {
			return err
		}
	}
	if files["oneturn.yaml"], err = json.Marshal(manifest); err != nil { // JSON is YAML
		return fmt.Errorf("encode a manifest: %w", err)
	}
	for n := range f.Count {
		folder := filepath.Join(f.Dir, f.of(n))
		errs := []error{os.MkdirAll(folder, 0o700)}
		for name, data := range files {
			errs = append(errs, os.WriteFile(filepath.Join(folder, name), data, 0o600))
		}
		if err := errors.Join(errs...); err != nil {
			return fmt.Errorf("write a workflow: %w", err)
		}
	}
	return nil
}

// echo is the Python tool: a parameter for each field of the ticket, and a result of them all.
func echo() ([]byte, error) {
	data, err := json.Marshal(ticket{})
	if err != nil {
		return nil, fmt.Errorf("encode a ticket: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("decode a ticket: %w", err)
	}
	parameters := strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
	return fmt.Appendf(nil, "def echo(%s):\n    return dict(locals())\n", parameters), nil
}
