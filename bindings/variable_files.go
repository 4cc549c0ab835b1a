package bindings

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Files whose content is the start value of a context variable. They are read when the workflow is loaded, from one
// folder and never from outside of it: neither by .. nor by a symbolic link. Files that look like secrets are refused
// by their names.

// maxVariableFile bounds such a file, in bytes.
const maxVariableFile = 1 << 20

// Formats of such a file.
const (
	formatJSON = "json"
	formatYAML = "yaml"
	formatText = "text"
)

// variableFiles reads the files of one workflow.
type variableFiles struct {
	folder   string   // the folder that they are in, links resolved
	root     *os.Root // the same, nil if it cannot be opened
	workflow string   // the folder of the workflow relative to it; "" if it is not inside
	base     string   // digest of the workflow without them
	sum      hash.Hash
}

// openFiles opens the folder of the files; it is opened only if a variable needs it.
func (b *binder) openFiles(opts *Options) *variableFiles {
	f := &variableFiles{base: b.w.digest}
	needed := slices.ContainsFunc(b.variables, func(v Variable) bool { return v.Source.Type == SourceFile })
	if folder := opts.filesFolder(); needed && folder != "" {
		if resolved, err := filepath.EvalSymlinks(folder); err == nil {
			f.folder = resolved
			f.root, _ = os.OpenRoot(resolved)
		}
	}
	if f.root != nil && b.w.dir != "" {
		if dir, err := filepath.EvalSymlinks(filepath.Join(opts.Root, filepath.FromSlash(b.w.dir))); err == nil {
			if dir, err = filepath.Abs(dir); err == nil {
				f.workflow = f.inside(dir)
			}
		}
	}
	return f
}

func (f *variableFiles) close() {
	if f.root != nil {
		_ = f.root.Close()
	}
}

// digest identifies the workflow with these files, "" without any.
func (f *variableFiles) digest() string {
	if f.sum == nil {
		return ""
	}
	f.sum.Write([]byte(f.base))
	return shortHash(f.sum)
}

// inside returns an absolute name relative to the folder, "" if it is outside of it.
func (f *variableFiles) inside(name string) string {
	folder, err := filepath.Abs(f.folder)
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(folder, name)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}

// fileProblem is why a file is not read: code, what is wrong, fix.
type fileProblem struct{ code, text, fix string }

// fromFile returns the content of a variable's file. A missing or refused file leaves the default, one with invalid
// content null.
func (b *binder) fromFile(v *Variable, files *variableFiles) any {
	name, _ := v.Source.Params["path"].(string)
	if name == "" {
		name, _ = v.Source.Params["file"].(string)
	}
	data, problem := files.read(name)
	if problem != nil {
		b.warnf(v.at, problem.code, problem.fix, "file %s of context variable %s %s: the default is used", quoted(name), v.Name, problem.text)
		return b.typed(v, v.Default, "default")
	}
	value, err := decodeFile(formatOf(v, name), data)
	if err != nil {
		b.warnf(v.at, "file_unreadable", "correct the file, or its format: json, yaml or text", "file %s of context variable %s cannot be read: %v: the variable is null", quoted(name), v.Name, err)
		return nil
	}
	return b.typed(v, value, "file")
}

// decodeFile returns the value tree of a file.
func decodeFile(format string, data []byte) (any, error) {
	switch format {
	case formatJSON, formatYAML, "yml":
		d, err := parse("content."+format, data)
		var syntax *parseError
		switch {
		case errors.As(err, &syntax):
			return nil, fmt.Errorf("line %d: %s", syntax.line, syntax.reason)
		case err != nil:
			return nil, err
		}
		return d.root.value(), nil
	case formatText, "txt":
		text := strings.TrimPrefix(string(data), "\ufeff")
		if !utf8.ValidString(text) {
			return nil, errors.New("it is not UTF-8")
		}
		return text, nil
	}
	return nil, fmt.Errorf("unknown format %s", quoted(format))
}

// read returns a file by its name relative to the folder, else to the folder of the workflow.
func (f *variableFiles) read(name string) ([]byte, *fileProblem) {
	missing := &fileProblem{"file_missing", "is missing", "create it, or correct path: it is relative to the folder that holds the workflows folder, or to the workflow's folder"}
	if f.root == nil || name == "" {
		return nil, missing
	}
	clean := path.Clean(name)
	if path.IsAbs(name) {
		if clean = f.inside(filepath.Clean(name)); clean == "" {
			return nil, outsideFile()
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(clean)) || strings.ContainsRune(name, '\x00') {
		return nil, outsideFile()
	}
	candidates := []string{clean}
	if f.workflow != "" && !path.IsAbs(name) {
		candidates = append(candidates, path.Join(f.workflow, clean))
	}
	for i, candidate := range candidates {
		// The names of the folders above a workflow are not the manifest's choice.
		if secretFile(clean) || i == 0 && secretFile(candidate) {
			return nil, refusedFile()
		}
		data, problem := f.readInside(candidate)
		if problem == nil || problem.code != missing.code {
			return data, problem
		}
	}
	return nil, missing
}

// readInside reads a file by its name relative to the folder.
func (f *variableFiles) readInside(name string) ([]byte, *fileProblem) {
	resolved, err := filepath.EvalSymlinks(filepath.Join(f.folder, filepath.FromSlash(name)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fileProblem{code: "file_missing"}
	case err != nil:
		return nil, &fileProblem{"file_refused", "cannot be opened", "let the worker read it"}
	}
	if resolved, err = filepath.Abs(resolved); err != nil {
		return nil, &fileProblem{"file_refused", "cannot be opened", "let the worker read it"}
	}
	target := f.inside(resolved)
	switch {
	case target == "":
		return nil, outsideFile()
	case target != name && secretFile(target):
		return nil, refusedFile()
	}
	data, err := (&folder{root: f.root}).read(filepath.FromSlash(target), maxVariableFile)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, &fileProblem{"file_too_large", "is larger than 1 MiB", "let a tool read it"}
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fileProblem{code: "file_missing"}
	case err != nil:
		return nil, &fileProblem{"file_refused", "is not a regular file that the worker may read", "name a regular file"}
	}
	if f.sum == nil {
		f.sum = sha256.New()
	}
	hashPart(f.sum, target, data)
	return data, nil
}

func outsideFile() *fileProblem {
	return &fileProblem{"file_outside", "is outside of the folder for files", "move it into the workflow's folder, or choose another folder with --context-files"}
}

func refusedFile() *fileProblem {
	return &fileProblem{"file_refused", "is refused, because its name is one of secrets or hidden files", "rename it if it holds no secret"}
}

// secretFile reports whether a path has a name that files with secrets have, or a hidden one. Kubernetes gives the
// versions of a mounted folder names that begin with two dots.
func secretFile(name string) bool {
	words := []string{"secret", "credential", "password", "private_key", "private-key", "id_rsa", "id_ed25519", "id_ecdsa", "id_dsa", ".env."}
	for part := range strings.SplitSeq(strings.ToLower(name), "/") {
		hidden := strings.HasPrefix(part, ".") && !strings.HasPrefix(part, "..")
		if hidden || slices.ContainsFunc(words, func(word string) bool { return strings.Contains(part, word) }) {
			return true
		}
	}
	base := strings.ToLower(path.Base(name))
	return slices.Contains([]string{
		".env", ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".der", ".creds", ".nk", ".seed", ".jwt", ".gpg", ".asc", ".age",
	}, path.Ext(base))
}
