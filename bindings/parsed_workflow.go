package bindings

import (
	"crypto/sha256"
	"errors"
	"hash"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/diag"
)

// One workflow from its folder to its manifest: files are read and hashed, an unchanged digest reuses the previous
// version, Python files of the tools are located for the inspection, and tools that are declared in Go are added.

// maxInspected bounds the Python files of one workflow that are inspected.
const maxInspected = 500

// parsedWorkflow is a workflow between reading and binding.
type parsedWorkflow struct {
	dir      string // relative to the root; "" if there is no folder
	base     string // digest of all that is its own
	digest   string // base, and what it uses of others
	manifest *manifest
	python   map[string][]byte // files to inspect, relative to the root; nil = not kept, on the disk only
	sources  map[string][]byte // the Python files, relative to the folder; see [Set.Sources]
	external map[string][]byte // of the files to inspect, those outside of the folder
	local    []string          // names of modules that the folder has
	same     *workflow         // the previous version, if nothing changed
}

// parseWorkflow reads one workflow. Whatever goes wrong becomes a diagnostic.
func parseWorkflow(root *os.Root, name, dir string, declared []Declaration, common *shared, previous *Set) *parsedWorkflow {
	d := &parsedWorkflow{dir: dir, python: make(map[string][]byte), manifest: &manifest{
		report: &report{workflow: name}, registered: make(map[string]registration), shared: common,
	}}
	sum := sha256.New()
	if err := d.readFolder(root, sum, declared, previous); err != nil {
		d.manifest.errorf(place{file: dir}, "unreadable", "let the worker read the folder", "the folder cannot be read: %v", err)
		d.finishDigest(sum, declared, previous)
	}
	if d.same == nil {
		d.declare(declared)
		d.join()
	}
	return d
}

func (d *parsedWorkflow) readFolder(root *os.Root, sum hash.Hash, declared []Declaration, previous *Set) error {
	if d.dir == "" {
		d.finishDigest(sum, declared, previous)
		return nil
	}
	inside, err := root.OpenRoot(d.dir)
	if err != nil {
		return err //nolint:wrapcheck // the caller adds the operation
	}
	defer inside.Close()
	f := &folder{name: d.manifest.workflow, dir: d.dir, root: inside, all: root}
	c, err := f.scan()
	if err != nil {
		return err
	}
	hashPart(sum, "folder", []byte(c.digest))
	d.finishDigest(sum, declared, previous)
	if d.same != nil {
		return nil
	}
	if c.cut {
		d.manifest.warnf(place{file: d.dir}, "too_many_files", "move files that are not code of the workflow out of the folder",
			"the folder has more files than are looked at; changes in some are not noticed")
	}
	if d.manifest.root, err = filepath.Abs(root.Name()); err != nil {
		return err //nolint:wrapcheck // the caller adds the operation
	}
	d.manifest.enterprise = c.enterprise
	d.manifest.readAll(f, c)
	d.manifest.connect()
	d.locate(f, c)
	if d.callsPython() {
		d.sources = c.sources
	}
	d.local = localModules(c.python)
	d.local = append(d.local, filepath.Base(d.manifest.root))
	return nil
}

// finishDigest completes the digest and finds the previous version if it is the very same.
func (d *parsedWorkflow) finishDigest(sum hash.Hash, declared []Declaration, previous *Set) {
	for i := range declared {
		hashPart(sum, "declared", declared[i].fingerprint())
	}
	d.base = shortHash(sum)
	d.digest = d.base
	if previous == nil {
		return
	}
	if old := previous.workflows[d.manifest.workflow]; old != nil && old.base == d.base && old.dir == d.dir && !old.unsure &&
		(!old.shares || old.joined == d.manifest.shared.version()) {
		d.same = old
	}
}

// join makes the shared file a part of the digest if the workflow uses something of it.
func (d *parsedWorkflow) join() {
	if len(d.external) > 0 {
		sum := sha256.New()
		for _, name := range slices.Sorted(maps.Keys(d.external)) {
			hashPart(sum, name, d.external[name])
		}
		sum.Write([]byte(d.digest))
		d.digest = shortHash(sum)
	}
	if version := d.manifest.shared.version(); d.manifest.shares && version != "" {
		sum := sha256.New()
		hashPart(sum, d.digest, []byte(version))
		d.digest = shortHash(sum)
	}
}

// readAll parses the manifests of a folder.
func (m *manifest) readAll(f *folder, c *contents) {
	docs := make(map[string]document)
	for _, section := range sections() {
		docs[section] = m.choose(f, c, section)
	}
	m.readMozaiks(docs)
	m.readOneturn(docs["oneturn"])
}

// choose parses the manifest of a section. If there are several files for it, the first counts
// and the others are compared with it.
func (m *manifest) choose(f *folder, c *contents, section string) document {
	var chosen document
	found := false
	for _, ext := range extensions() {
		name := section + ext
		data, ok := c.manifests[name]
		if !ok {
			continue
		}
		d, usable := m.parse(f.rel(name), data, c.failures[name])
		switch {
		case !found:
			chosen, found = d, true
		case !usable || !reflect.DeepEqual(chosen.root.value(), d.root.value()):
			m.warnf(place{file: d.file}, "ignored_manifest", "remove one of them",
				"%s is ignored because %s is there, and they differ", name, path.Base(chosen.file))
		}
	}
	return chosen
}

func (m *manifest) parse(file string, data []byte, failure error) (d document, usable bool) {
	at := place{file: file}
	if failure == nil {
		d, failure = parse(file, data)
	}
	if failure == nil {
		for _, r := range d.repeated {
			sev := diag.SeverityWarning
			if isOwnFormat(path.Base(file)) {
				sev = diag.SeverityError
			}
			m.add(sev, place{file, r.line}, "repeated_key", "duplicate key "+quoted(r.key)+"; the last value is used", "remove one of them")
		}
		return d, true
	}
	reason := failure.Error()
	var syntax *parseError
	if errors.As(failure, &syntax) {
		at.line, reason = syntax.line, syntax.reason
	}
	m.errorf(at, "unreadable_manifest", readableAgain(file, reason), "the file cannot be read: %s", reason)
	m.unreadable = append(m.unreadable, at)
	return document{file: file}, false
}

// locate finds the files of the tools and lists what is to be inspected: these files and all
// of tools/.
func (d *parsedWorkflow) locate(f *folder, c *contents) {
	m := d.manifest
	for i := range m.tools {
		t := &m.tools[i]
		if t.kind != KindPython {
			continue
		}
		var name string
		var missing *bindProblem
		if name, missing = f.locate(t.file, t.at, c); missing != nil {
			t.problem = missing
			continue
		}
		t.path = f.rel(name)
		d.python[t.path] = c.sources[name]
		if strings.HasPrefix(name, "../") {
			d.shareFile(f, t.path)
		}
	}
	for _, ref := range m.files {
		if _, missing := f.locate(ref.name, ref.at, c); missing != nil {
			m.warnf(ref.at, "file_missing", missing.fix, "%s", missing.text)
		}
	}
	for _, name := range c.python {
		if strings.HasPrefix(name, "tools/") && len(d.python) < maxInspected {
			d.python[f.rel(name)] = c.sources[name]
		}
	}
}

// shareFile takes up a file of another folder of the workflows folder. It is part of the digest.
func (d *parsedWorkflow) shareFile(f *folder, path string) {
	data, err := (&folder{root: f.all}).read(path, maxSource)
	if err != nil {
		return // the Python host reports it when the tool is called
	}
	if d.external == nil {
		d.external = make(map[string][]byte)
	}
	d.python[path], d.external[path] = data, data
}

// kept reports whether the digest covers all that was inspected.
func (d *parsedWorkflow) kept() bool {
	for _, data := range d.python {
		if data == nil {
			return false
		}
	}
	return true
}

// callsPython reports whether a tool of the workflow is a Python function.
func (d *parsedWorkflow) callsPython() bool {
	return slices.ContainsFunc(d.manifest.tools, func(t toolEntry) bool { return t.kind == KindPython })
}

// localModules gives the top-level names that the files of a folder can be imported by: from
// the folder itself and from tools/.
func localModules(files []string) []string {
	var names []string
	for _, name := range files {
		for _, inside := range []string{name, strings.TrimPrefix(name, "tools/")} {
			top, _, _ := strings.Cut(inside, "/")
			names = append(names, strings.TrimSuffix(top, ".py"))
		}
	}
	return sortedSet(names)
}
