package agui

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
)

// JSON Patch (RFC 6902), which changes states and activities.

// Patch is a list of operations, applied in order.
type Patch []PatchOp

// PatchOp is one operation. Make them with [Add], [Replace], [Remove] and [Move]; Op may also be "copy" or "test".
type PatchOp struct {
	Op    string // add, remove, replace, move, copy or test
	Path  string // an RFC 6901 pointer, see [Pointer]
	From  string // of move and copy
	Value any    // of add, replace and test, where null counts
}

// Add inserts a value. It replaces the member of an object that exists; its parent has to exist.
func Add(path string, value any) PatchOp { return PatchOp{Op: "add", Path: path, Value: value} }

// Replace replaces a value, which has to exist.
func Replace(path string, value any) PatchOp { return PatchOp{Op: "replace", Path: path, Value: value} }

// Remove removes a value, which has to exist.
func Remove(path string) PatchOp { return PatchOp{Op: "remove", Path: path} }

// Move moves a value.
func Move(from, path string) PatchOp { return PatchOp{Op: "move", From: from, Path: path} }

// Pointer returns the RFC 6901 pointer to a value below these keys: Pointer("turns", "a/b") is /turns/a~1b.
func Pointer(keys ...string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, key := range keys {
		b.WriteByte('/')
		b.WriteString(escape.Replace(key))
	}
	return b.String()
}

// MarshalJSON writes the members that the operation has, value also if it is null.
func (o PatchOp) MarshalJSON() ([]byte, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	var b []byte
	var err error
	switch o.Op {
	case "remove":
		b, err = json.Marshal(struct {
			Op   string `json:"op"`
			Path string `json:"path"`
		}{o.Op, o.Path}, encodeOptions)
	case "move", "copy":
		b, err = json.Marshal(struct {
			Op   string `json:"op"`
			From string `json:"from"`
			Path string `json:"path"`
		}{o.Op, o.From, o.Path}, encodeOptions)
	default:
		b, err = json.Marshal(struct {
			Op    string `json:"op"`
			Path  string `json:"path"`
			Value any    `json:"value"`
		}{o.Op, o.Path, o.Value}, encodeOptions)
	}
	if err != nil {
		return nil, fmt.Errorf("encode the patch operation %q: %w", o.Op, err)
	}
	return b, nil
}

// check returns what makes clients refuse the operation before they look at the document.
func (o PatchOp) check() error {
	switch o.Op {
	case "add", "replace", "test", "remove":
	case "move", "copy":
		if err := checkPointer(o.From); err != nil {
			return fmt.Errorf("from of the patch operation %q: %w", o.Op, err)
		}
		if o.Op == "move" && strings.HasPrefix(o.Path, o.From+"/") {
			return errors.New("patch operation \"move\" moves a value into itself: path may not begin with from")
		}
	default:
		return fmt.Errorf("unknown patch operation %.20q: use add, remove, replace, move, copy or test", o.Op)
	}
	if err := checkPointer(o.Path); err != nil {
		return fmt.Errorf("path of the patch operation %q: %w", o.Op, err)
	}
	return nil
}

// checkPointer returns an error unless p is a pointer of RFC 6901.
func checkPointer(p string) error {
	if p != "" && p[0] != '/' {
		return fmt.Errorf("%.100q does not begin with a slash: make it with Pointer", p)
	}
	for i := range len(p) {
		if p[i] == '~' && (i+1 == len(p) || p[i+1] != '0' && p[i+1] != '1') {
			return fmt.Errorf("%.100q has ~ without 0 or 1: make it with Pointer", p)
		}
	}
	return nil
}
