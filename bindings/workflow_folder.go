package bindings

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/oneturn/oneturn/events"
)

// All reading of a workflow's files: which folders are workflows, their manifests and Python files, and where a
// tool's file is. Sizes and numbers are bounded, and nothing outside of the root is opened.

// Bounds of one workflow's folder.
const (
	maxManifest = 1 << 20  // bytes of a manifest
	maxSource   = 16 << 20 // bytes of a Python file
	maxFiles    = 2000     // Python files of a workflow
	maxKept     = 16 << 20 // bytes of all Python files of a workflow that are kept
	maxWalked   = 20_000   // entries that are looked at
)

// sections are the manifests of a workflow, without extension.
func sections() []string {
	return []string{
		"oneturn", "orchestrator", "agents", "structured_outputs", "tools",
		"context_variables", "handoffs", "hooks", "ui_config",
	}
}

// identifying are the manifests that make a folder a workflow.
func identifying() []string {
	return []string{"oneturn", "orchestrator", "tools", "agents", "structured_outputs"}
}

// extensions of manifests; of two files with one name the first in this order is read.
func extensions() []string { return []string{".yaml", ".yml", ".json"} }

// enterpriseID is what workflows from before 2026 call app_id.
const enterpriseID = "enterprise_id"

// folder is a workflow's folder. All reading goes through an [os.Root]: no file name of a
// manifest, and no symbolic link, leads out of it.
type folder struct {
	name string // of the workflow
	dir  string // relative to the root, "." if it is the root itself
	root *os.Root
	all  *os.Root // the workflows folder
}

// rel gives the path of a file of the folder relative to the root.
func (f *folder) rel(name string) string { return path.Join(f.dir, name) }

// discover lists the workflows directly under root. A root that has manifests itself is taken
// as one workflow. The keys of dirs are names; clash is one that two folders have.
func discover(root *os.Root, rootPath string) (dirs map[string]string, single bool, clash string, err error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, false, "", fmt.Errorf("read the workflows folder %s: %w", rootPath, err)
	}
	dirs = make(map[string]string)
	if hasManifest(entries) {
		abs, err := filepath.Abs(rootPath)
		if err != nil {
			return nil, false, "", fmt.Errorf("find the name of the workflows folder %s: %w", rootPath, err)
		}
		dirs[events.Name(filepath.Base(abs))] = "."
		return dirs, true, "", nil
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			continue
		}
		if info, err := root.Stat(name); err != nil || !info.IsDir() {
			continue // also links that lead out of the root
		}
		inside, err := fs.ReadDir(root.FS(), name)
		if err != nil {
			continue
		}
		tools := slices.ContainsFunc(inside, func(e fs.DirEntry) bool { return e.Name() == "tools" && e.IsDir() })
		if tools || hasManifest(inside) {
			if key := events.Name(name); dirs[key] == "" {
				dirs[key] = name
			} else {
				clash = key
			}
		}
	}
	return dirs, false, clash, nil
}

func hasManifest(entries []fs.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		ext := path.Ext(e.Name())
		return !e.IsDir() && slices.Contains(extensions(), ext) &&
			slices.Contains(identifying(), strings.TrimSuffix(e.Name(), ext))
	})
}

// errTooLarge is the error for a file that is larger than it may be.
var errTooLarge = errors.New("file is too large")

// read returns a regular file of at most limit bytes.
func (f *folder) read(name string, limit int64) ([]byte, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: over %d bytes", errTooLarge, limit)
	}
	return data, nil
}

// open opens a regular file. A named pipe would block, hence non-blocking and the check.
func (f *folder) open(name string) (*os.File, error) {
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// locate finds a tool's file as it is written in a manifest: in the folder, then in tools/.
// The result is relative to the folder. What was read by then is there, whatever has happened
// to the disk since.
func (f *folder) locate(file string, at place, c *contents) (string, *bindProblem) {
	name := path.Clean(file)
	wrong := func(fix, format string) *bindProblem {
		return &bindProblem{at: at, text: fmt.Sprintf(format, quoted(file)), fix: fix}
	}
	switch {
	case strings.ContainsAny(file, "\\\x00"), path.IsAbs(file), !filepath.IsLocal(filepath.FromSlash(f.rel(name))):
		return "", wrong("write a relative path inside of it", "file %s must be inside the workflows folder")
	case path.Ext(name) != ".py":
		return "", wrong("name a Python file, or write kind: go", "file %s must end in .py")
	}
	var first *bindProblem
	for _, candidate := range []string{name, path.Join("tools", name)} {
		if i := slices.IndexFunc(c.python, func(there string) bool { return there == candidate || events.Name(there) == candidate }); i >= 0 && c.sources[c.python[i]] != nil {
			return c.python[i], nil
		}
		info, err := f.stat(candidate)
		var found *bindProblem
		switch {
		case err == nil && info.Mode().IsRegular():
			return candidate, nil
		case err == nil:
			found = wrong("name a regular file", "file %s is not a regular file")
		case errors.Is(err, fs.ErrNotExist):
			continue
		default:
			found = wrong("name a file that the worker may read, inside the workflow's folder", "file %s cannot be used: "+strings.ReplaceAll(err.Error(), "%", "%%"))
		}
		if first == nil {
			first = found
		}
	}
	if first != nil {
		return "", first
	}
	var there []string
	for _, known := range c.python {
		if path.Base(known) != "__init__.py" {
			there = append(there, strings.TrimPrefix(known, "tools/"))
		}
	}
	if strings.HasPrefix(name, "../") {
		return "", wrong("create "+f.rel(name)+" in the workflows folder", "file %s not found")
	}
	name = strings.TrimPrefix(name, "tools/")
	return "", wrong(thereOr(name, there, "create "+path.Join("tools", name)), "file %s not found in the workflow's folder or its tools folder")
}

// stat looks at a file by its name relative to the folder. A name that goes up leads to another folder
// of the workflows folder.
func (f *folder) stat(name string) (fs.FileInfo, error) {
	if filepath.IsLocal(filepath.FromSlash(name)) {
		return f.root.Stat(name) //nolint:wrapcheck // the caller adds the operation
	}
	if !filepath.IsLocal(filepath.FromSlash(f.rel(name))) {
		return nil, fs.ErrNotExist
	}
	return f.all.Stat(f.rel(name)) //nolint:wrapcheck // the caller adds the operation
}

// contents is what a folder holds that matters.
type contents struct {
	manifests  map[string][]byte // file name → bytes, for sections; nil bytes = unreadable
	failures   map[string]error  // file name → why it is unreadable
	python     []string          // *.py relative to the folder, sorted
	dirs       []string          // folders, relative to the folder, for watching
	sources    map[string][]byte // the Python files; nil if they are over maxKept
	cut        bool              // more files than are looked at
	enterprise bool              // a file has the name enterprise_id
	digest     string            // of all of these
}

// scan reads the manifests and hashes them together with every Python file.
func (f *folder) scan() (*contents, error) {
	c := &contents{manifests: make(map[string][]byte), failures: make(map[string]error), sources: make(map[string][]byte)}
	sum := sha256.New()
	for _, section := range sections() {
		f.scanSection(section, c, sum)
	}
	for _, data := range c.manifests {
		c.enterprise = c.enterprise || bytes.Contains(data, []byte(enterpriseID))
	}
	if err := f.walk(c); err != nil {
		return nil, err
	}
	kept := 0
	for _, name := range c.python {
		data, err := f.read(name, maxSource)
		if err != nil {
			hashPart(sum, name, []byte(err.Error()))
			continue
		}
		hashPart(sum, name, data)
		c.enterprise = c.enterprise || bytes.Contains(data, []byte(enterpriseID))
		if kept += len(data); kept > maxKept {
			c.sources = nil
		}
		if c.sources != nil {
			c.sources[name] = data
		}
	}
	c.digest = shortHash(sum)
	return c, nil
}

// scanSection reads and hashes the files that a manifest may be.
func (f *folder) scanSection(section string, c *contents, sum hash.Hash) {
	for _, ext := range extensions() {
		name := section + ext
		if _, err := f.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		data, err := f.read(name, maxManifest)
		c.manifests[name] = data
		if err != nil {
			c.failures[name] = err
			data = []byte(err.Error())
		}
		hashPart(sum, name, data)
	}
}

// skipped names folders that hold no code of the workflow.
func skipped(name string) bool {
	return strings.HasPrefix(name, ".") || name == "__pycache__" || name == "node_modules" || name == "venv"
}

func (f *folder) walk(c *contents) error {
	walked := 0
	err := fs.WalkDir(f.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		walked++
		switch {
		case err != nil:
			return fs.SkipDir // a folder that vanished or may not be read
		case walked > maxWalked || len(c.python) >= maxFiles:
			c.cut = true
			return fs.SkipAll
		case e.IsDir() && name != "." && skipped(e.Name()):
			return fs.SkipDir
		case e.IsDir():
			c.dirs = append(c.dirs, name)
		case path.Ext(name) == ".py":
			c.python = append(c.python, name)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look through workflow %s: %w", f.name, err)
	}
	slices.Sort(c.python)
	return nil
}

// hashPart adds a name and its bytes, each with its length, so that parts cannot run together.
func hashPart(sum hash.Hash, name string, data []byte) {
	for _, part := range [][]byte{[]byte(name), data} {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		sum.Write(part)
	}
}

// shortHash gives the first 16 hex digits.
func shortHash(sum hash.Hash) string {
	const digits = 16
	return hex.EncodeToString(sum.Sum(nil))[:digits]
}
