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
const hostModules = "frames dataframes encode context interaction questions generators api output shims sources workflow_imports hints build_cost scalars models build entry multiprocessing_spawn load loops process_state loop_watch serve"

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
