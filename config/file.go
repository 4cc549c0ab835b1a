package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/oneturn/oneturn/diag"
)

// The config file is a flat map from setting to value, in YAML or JSON. Each value keeps its line for error
// messages.

// fileEntry is the value of one key of a config file.
type fileEntry struct {
	texts []string
	at    string // file:line
}

// parseFile reads a flat YAML (or JSON) mapping of keys to scalars and lists of scalars. Keys
// of other commands are accepted, so that one file can serve all; unknown ones are problems.
func parseFile(name string, data []byte) (map[string]fileEntry, []diag.Finding) {
	whole := func(message string) []diag.Finding {
		return []diag.Finding{invalid(name, message, "write one setting per line, for example slots: 256")}
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil // an empty file
	}
	if err != nil {
		return nil, whole("is neither YAML nor JSON: " + firstLine(err))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, whole("has more than one document")
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil // only comments
	}
	if root.Kind != yaml.MappingNode {
		return nil, whole("is not a mapping of keys to values")
	}
	if key := manifestKey(root); key != nil {
		return nil, []diag.Finding{invalid(fmt.Sprintf("%.60q in %s:%d", key.Value, name, key.Line), "this is a workflow manifest, not a config file",
			"pass the folder that holds its workflow folder with --workflows, and omit --config")}
	}
	return parseEntries(name, root)
}

// manifestKey returns the first key of a mapping that only workflow manifests have, nil without one.
func manifestKey(root *yaml.Node) *yaml.Node {
	manifest := []string{"agents", "models", "servers", "defaults", "on_key_reuse"}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		listsTools := key.Value == "tools" && value.Kind == yaml.SequenceNode // a scalar is a misspelt setting
		if slices.Contains(manifest, key.Value) || listsTools {
			return key
		}
	}
	return nil
}

func parseEntries(name string, root *yaml.Node) (map[string]fileEntry, []diag.Finding) {
	known := allKeys()
	entries := map[string]fileEntry{}
	var problems []diag.Finding
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		at := fmt.Sprintf("%s:%d", name, key.Line)
		setting := fmt.Sprintf("%.60q in %s", key.Value, at)
		near := closestSetting(key.Value, known)
		_, twice := entries[key.Value]
		texts, ok := scalars(value)
		switch {
		case near != key.Value && near != "":
			problems = append(problems, invalid(setting, "unknown setting", "did you mean "+near+"?"))
		case near == "":
			problems = append(problems, invalid(setting, "unknown setting", "use a key of docs/configuration.md, for example slots"))
		case twice:
			problems = append(problems, invalid(setting, "duplicate setting", "keep one of them"))
		case !ok:
			problems = append(problems, invalid(setting, "is neither a plain value nor a list of them", "write "+key.Value+": VALUE"))
		default:
			entries[key.Value] = fileEntry{texts, at}
		}
	}
	return entries, problems
}

// scalars returns the texts of a scalar or a list of scalars. Anchors, maps and null are not
// values.
func scalars(n *yaml.Node) ([]string, bool) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		return []string{n.Value}, true
	case n.Kind != yaml.SequenceNode:
		return nil, false
	}
	texts := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return nil, false
		}
		texts = append(texts, item.Value)
	}
	return texts, true
}

// allKeys lists the config-file keys of all commands. The key config is not among them: a
// file cannot name another one.
func allKeys() []string {
	var keys []string
	for _, cfg := range []any{&Worker{}, &Gateway{}, &Publisher{}, &Provision{}} {
		for _, f := range fieldsOf(reflect.ValueOf(cfg).Elem()) {
			if f.flag != "config" {
				keys = append(keys, f.key())
			}
		}
	}
	return keys
}

// firstLine is the first line of an error, cut short.
func firstLine(err error) string {
	line, _, _ := bytes.Cut([]byte(err.Error()), []byte("\n"))
	return string(line[:min(len(line), 200)])
}
