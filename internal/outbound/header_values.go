package outbound

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/redact"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// Headers of manifests whose values may come from files: Text reads a value each time, because files change;
// settings adds them to a request and remembers the secrets among them, to redact them in answers.

// maxValue bounds a file that holds a setting, in bytes.
const maxValue = 64 << 10

// Text returns a setting as it is now. One whose file cannot be read is an error with code
// tool_error; nothing has happened, so it is retryable.
func Text(v target.Value) (string, error) {
	if v.File == "" {
		return v.Text, nil
	}
	fail := func(msg string, err error) (string, error) {
		return "", tools.Retryable(&events.Error{
			Code: events.CodeToolError, Op: "read the file of a setting", Msg: msg + ": the worker's log has its name",
			Err: &target.FileError{File: v.File, Err: err},
		})
	}
	info, err := os.Stat(v.File)
	if err == nil && !info.Mode().IsRegular() { // opening a pipe without a writer would never end
		return fail("a file that the tool's manifest names is a folder, a pipe or a device", errIrregular)
	}
	f, err := os.Open(v.File)
	if err != nil {
		return fail("a file that the tool's manifest names cannot be read", bare(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxValue+1))
	text := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	switch {
	case err != nil:
		return fail("a file that the tool's manifest names cannot be read", bare(err))
	case len(data) > maxValue:
		return fail(fmt.Sprintf("a file that the tool's manifest names holds more than %d bytes", maxValue), errTooMuch)
	case text == "":
		return fail("a file that the tool's manifest names is empty", errEmpty)
	}
	return v.Prefix + text, nil
}

var (
	errIrregular = errors.New("it is a folder, a pipe or a device")
	errTooMuch   = errors.New("it holds too much")
	errEmpty     = errors.New("it is empty")
	errLines     = errors.New("it holds a line break or another control character")
)

// bare is an error of a file without its name.
func bare(err error) error {
	var named *fs.PathError
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}

// settings are the headers of a manifest. Those from files are secrets.
type settings struct {
	values map[string]target.Value

	mu    sync.Mutex
	known []string // secrets that were sent, the newest last
}

// maxKnown is how many secrets are remembered for each header: a request may be under way while
// a file changes.
const maxKnown = 2

// add sets the headers that h lacks.
func (s *settings) add(h http.Header) error {
	for name, v := range s.values {
		name = http.CanonicalHeaderKey(name)
		if _, set := h[name]; set {
			continue
		}
		text, err := Text(v)
		if err != nil {
			return err
		}
		if strings.ContainsFunc(text, control) {
			failed := &events.Error{
				Code: events.CodeToolError, Op: "set header " + name,
				Msg: "the value of header " + name + " holds a line break or another control character: a file of a header holds one line",
			}
			if v.File != "" {
				failed.Err = &target.FileError{File: v.File, Err: errLines}
			}
			return failed
		}
		if v.File != "" {
			s.addSecret(text, strings.TrimPrefix(text, v.Prefix))
		}
		h[name] = []string{text}
	}
	return nil
}

func control(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// addSecret remembers a secret.
func (s *settings) addSecret(texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range texts {
		if !slices.Contains(s.known, text) {
			s.known = append(s.known, text)
		}
	}
	if most := len(texts) * maxKnown * len(s.values); len(s.known) > most {
		s.known = slices.Clone(s.known[len(s.known)-most:])
	}
}

// secrets are those that were sent last.
func (s *settings) secrets() redact.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return redact.New(redact.Options{Lines: true}, s.known...)
}
