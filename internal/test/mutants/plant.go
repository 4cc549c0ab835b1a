package mutants

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Plant checks that each edit fits the source exactly once and has its guard, applies the edits of all faults and
// failpoints to copies of the files, and adds the files of testdata, which hold the code that edits call.

// added are the files that the overlay adds to packages, by their path from the root of the repository.
//
//go:embed testdata
var added embed.FS

// guard is the condition under which an edit has an effect.
var guard = regexp.MustCompile(`\bplanted\("(\w+)"\)`)

// pointGuard is a call to a failpoint.
var pointGuard = regexp.MustCompile(`\bpoint\("(\w+)",`)

// placed is an edit and where it applies.
type placed struct {
	Edit

	name     string // of the fault or failpoint
	from, to int    // offsets in the file
}

// Plant returns the content of the files that faults and failpoints change or add, by their path from root. It fails if an
// edit does not fit the source.
func Plant(root string, faults []Fault, points []Point) (map[string][]byte, error) {
	byFile := map[string][]placed{}
	var errs []error
	add := func(name string, e Edit, guard *regexp.Regexp, shared bool) {
		if err := e.check(name, guard, shared); err != nil {
			errs = append(errs, err)
			return
		}
		byFile[e.File] = append(byFile[e.File], placed{Edit: e, name: name})
	}
	for _, f := range faults {
		for _, e := range f.Edits {
			add(f.Name, e, guard, false)
		}
	}
	if len(faults) > 0 {
		for _, e := range shared() {
			add("several faults", e, guard, true)
		}
	}
	for _, p := range points {
		add(p.Name, p.Edit, pointGuard, false)
	}
	add("the overlay", overlaid(), guard, true)
	files := map[string][]byte{}
	for name, edits := range byFile {
		text, err := apply(root, name, edits)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		files[name] = text
	}
	errs = append(errs, addFiles(files, len(faults) > 0, len(points) > 0))
	return files, errors.Join(errs...)
}

// overlaid marks a build with the overlay.
func overlaid() Edit {
	return Edit{File: "internal/test/mutants/fault.go", From: "const Overlaid = false", To: "const Overlaid = true"}
}

// check reports what is wrong with an edit by itself. A shared edit calls an added function that has the guards.
func (e *Edit) check(name string, guard *regexp.Regexp, shared bool) error {
	guards := guard.FindAllStringSubmatch(e.To, -1)
	switch {
	case strings.Count(e.From, "\n") != strings.Count(e.To, "\n"):
		return fmt.Errorf("%s: %s: the edit changes the number of lines", e.File, name)
	case !shared && len(guards) == 0:
		return fmt.Errorf(`%s: %s: the edit has no guard: add %s to To`, e.File, name, strings.ReplaceAll(guard.String(), `\`, ""))
	}
	for _, g := range guards {
		if g[1] != name {
			return fmt.Errorf("%s: %s: the edit is guarded by %q, another name", e.File, name, g[1])
		}
	}
	return nil
}

// apply returns a file with its edits.
func apply(root, name string, edits []placed) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", name, edits[0].name, err)
	}
	text := string(source)
	for i := range edits {
		e := &edits[i]
		if n := strings.Count(text, e.From); n != 1 {
			return nil, fmt.Errorf("%s: %s: the text occurs %d times, want once: %q; the most similar line is %d",
				name, e.name, n, e.From, mostSimilar(text, e.From))
		}
		e.from = strings.Index(text, e.From)
		e.to = e.from + len(e.From)
	}
	slices.SortFunc(edits, func(a, b placed) int { return cmp.Compare(a.from, b.from) })
	var out strings.Builder
	end := 0
	for _, e := range edits {
		if e.from < end {
			return nil, fmt.Errorf("%s: %s: the edit overlaps the one before it", name, e.name)
		}
		out.WriteString(text[end:e.from] + e.To)
		end = e.to
	}
	out.WriteString(text[end:])
	if _, err := parser.ParseFile(token.NewFileSet(), name, out.String(), parser.SkipObjectResolution); err != nil {
		return nil, fmt.Errorf("with its faults: %w", err)
	}
	return []byte(out.String()), nil
}

// mostSimilar returns the number of the line of a text that shares most words with another text.
func mostSimilar(text, with string) int {
	words := strings.FieldsFunc(with, func(r rune) bool { return strings.ContainsRune(" \t\n.,:;!(){}", r) })
	best, most := 1, 0
	for n, line := range strings.Split(text, "\n") {
		shared := 0
		for _, w := range words {
			if strings.Contains(line, w) {
				shared++
			}
		}
		if shared > most {
			best, most = n+1, shared
		}
	}
	return best
}

// guardFile is the file with the guard of a package.
const guardFile = `package %s

import "os"

// planted reports whether a fault is planted. It is not inlined, so that a test finds the name in the binary.
//
//go:noinline
func planted(name string) bool { return os.Getenv(%q) == name }
`

// addFiles adds the guard to each package with a fault, and the files below testdata.
func addFiles(files map[string][]byte, faults, points bool) error {
	for name, text := range maps.Clone(files) {
		if dir := path.Dir(name); guard.Match(text) && name != overlaid().File {
			files[dir+"/planted.go"] = fmt.Appendf(nil, guardFile, path.Base(dir), Variable)
		}
	}
	err := fs.WalkDir(added, "testdata", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if isPoint := path.Base(name) == "points.go"; isPoint && !points || !isPoint && !faults {
			return nil
		}
		text, err := added.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read an added file: %w", err)
		}
		files[strings.TrimPrefix(name, "testdata/")] = text
		return nil
	})
	if err != nil {
		return fmt.Errorf("added files: %w", err)
	}
	return nil
}

// sources is the folder of the copies in the directory of an overlay. By its name, ./... does not match it.
const sources = "_sources"

// Write plants faults and failpoints and writes the files to a directory, with an overlay.json for the go command. It
// returns the path of the overlay.
func Write(root, dir string, faults []Fault, points []Point) (string, error) {
	files, err := Plant(root, faults, points)
	if err != nil {
		return "", err
	}
	root, errRoot := filepath.Abs(root)
	dir, errDir := filepath.Abs(dir)
	if err := errors.Join(errRoot, errDir); err != nil {
		return "", fmt.Errorf("overlay: %w", err)
	}
	replace := map[string]string{}
	for name, text := range files {
		to := filepath.Join(dir, sources, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
			return "", fmt.Errorf("overlay: %w", err)
		}
		if err := writeChanged(to, text); err != nil {
			return "", err
		}
		replace[filepath.Join(root, filepath.FromSlash(name))] = to
	}
	overlay, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return "", fmt.Errorf("overlay: %w", err)
	}
	to := filepath.Join(dir, "overlay.json")
	return to, writeChanged(to, append(overlay, '\n'))
}

// writeChanged writes a file unless it has this content.
func writeChanged(name string, text []byte) error {
	if old, err := os.ReadFile(name); err == nil && string(old) == string(text) {
		return nil
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	return nil
}
