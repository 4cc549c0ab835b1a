package python

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
)

//go:embed host/*.py inspect/*.py
var scripts embed.FS

// hostModules are the modules of the host in the order in which they import each other.
const hostModules = "frames dataframes encode context_variables operations questions generators api output shims " +
	"checked_sources workflow_imports type_hints build_limits build_scalars build_pydantic build_values tool_function " +
	"multiprocessing_spawn load event_loops restore_process blocked_loop serve"

// hostConfig is what a child needs to know before its first call.
type hostConfig struct {
	Root      string `json:"root"`   // folder that holds the workflow's folder
	Folder    string `json:"folder"` // the workflow's folder
	Workflow  string `json:"workflow"`
	MaxFrame  int    `json:"max_frame"`
	MaxMemory int64  `json:"max_memory"`
	Mark      string `json:"mark"` // word that begins the lines of a call

	Sources map[string][]byte `json:"sources"` // Python files of the folder, relative to it, as base64
}

// bootFrame returns the first frame of a child: the host's source and its configuration.
func bootFrame(config hostConfig) ([]byte, error) {
	var modules [][2]string
	for name := range strings.FieldsSeq(hostModules) {
		modules = append(modules, [2]string{name, script("host/" + name + ".py")})
	}
	body, err := json.Marshal(map[string]any{"modules": modules, "config": config})
	if err != nil {
		return nil, fmt.Errorf("encode the host's configuration: %w", err)
	}
	return frame(body), nil
}

// script returns an embedded file. The names are constants of this package.
func script(name string) string {
	source, err := scripts.ReadFile(name)
	if err != nil {
		panic("python: embedded file is missing: " + name)
	}
	return string(source)
}
