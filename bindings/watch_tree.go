package bindings

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// The folders and files that are watched: the links on the way to the root, the root, and each folder of a
// workflow. After each load the list is brought up to date.

// maxLinks bounds the symbolic links on the way to the root.
const maxLinks = 40

// gates are the places at which the root itself may be replaced: its own name, and the names
// of the symbolic links on the way to it. The key is the name, the value the folder it is in.
// Of what does not exist, the nearest folder above is watched for the next part of the name.
func gates(root string) map[string]string {
	found := make(map[string]string)
	name, err := filepath.Abs(root)
	if err != nil {
		return found
	}
	for range maxLinks {
		link, target := firstLink(name)
		if link == "" {
			break
		}
		found[link] = filepath.Dir(link)
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		name = filepath.Join(target, strings.TrimPrefix(name, link))
	}
	for {
		above := filepath.Dir(name)
		if info, err := os.Stat(above); err == nil && info.IsDir() || above == name {
			found[name] = above
			return found
		}
		name = above
	}
}

// firstLink finds the first part of an absolute path that is a symbolic link.
func firstLink(name string) (link, target string) {
	for i := 1; i <= len(name); i++ {
		if i < len(name) && name[i] != filepath.Separator {
			continue
		}
		if target, err := os.Readlink(name[:i]); err == nil {
			return name[:i], target
		}
	}
	return "", ""
}

// follow watches every folder that has or may get a file of ours, and the gates. A folder that
// was replaced by another one of its name is watched again: the system watches folders, not
// names. What is gone is forgotten first, as it may exist again under another name.
func (w *watch) follow() {
	if w.opts.Root == "" {
		return
	}
	for name, old := range w.folders {
		if now, err := os.Stat(name); err != nil || !os.SameFile(old, now) {
			w.forget(name)
		}
	}
	seen := make(map[string]bool)
	w.gates = gates(w.opts.Root)
	for _, folder := range w.gates {
		// Failure is not an error: it may be a folder that only root may read.
		if w.add(folder) == nil {
			seen[folder] = true
		}
	}
	w.inside = ""
	if resolved, err := filepath.EvalSymlinks(w.opts.Root); err == nil {
		if resolved, err = filepath.Abs(resolved); err == nil {
			w.inside = resolved
			w.walk(resolved, seen)
		}
	}
	for name := range w.folders {
		if !seen[name] {
			w.forget(name)
		}
	}
}

// walk watches the folders under the root. Each is watched before its entries are read, so
// that none is missed.
func (w *watch) walk(root string, seen map[string]bool) {
	n := 0
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && name != root:
			return nil // vanished meanwhile
		case err != nil:
			return err
		case !e.IsDir():
			return nil
		case name != root && skipped(e.Name()):
			return fs.SkipDir
		}
		if n++; n > maxWatched {
			return fs.SkipAll
		}
		if err := w.add(name); err != nil {
			return err
		}
		seen[name] = true
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		w.log.Warn("not every change of the workflows folder will be noticed", "error", err)
	}
}

func (w *watch) add(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		if os.IsNotExist(err) {
			return nil // vanished meanwhile
		}
		return err //nolint:wrapcheck // logged by walk
	}
	if err := w.watcher.Add(folder); err != nil && !os.IsNotExist(err) { // adding one again is free
		return err //nolint:wrapcheck // logged by walk
	}
	w.folders[folder] = info
	return nil
}

func (w *watch) forget(folder string) {
	delete(w.folders, folder)
	_ = w.watcher.Remove(folder) // it may be gone already
}

// relevant reports whether an event may change what is loaded: of files it is manifests, Python
// files and .env; what tools, Python and editors write next to them would only keep the folder
// from ever being still.
func (w *watch) relevant(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	if _, ok := w.gates[e.Name]; ok {
		return true
	}
	base, ext := filepath.Base(e.Name), filepath.Ext(e.Name)
	if w.inside == "" || base == "__pycache__" || e.Name != w.inside && !strings.HasPrefix(e.Name, w.inside+string(filepath.Separator)) {
		return false
	}
	if ext == ".py" || base == ".env" || slices.Contains(extensions(), ext) {
		return true
	}
	if e.Has(fsnotify.Create) {
		info, err := os.Lstat(e.Name)
		return err == nil && (info.IsDir() || info.Mode()&fs.ModeSymlink != 0)
	}
	// What a name without extension was cannot be seen any more: perhaps a folder or a link.
	_, folder := w.folders[e.Name]
	return e.Has(fsnotify.Remove|fsnotify.Rename) && (folder || ext == "")
}
