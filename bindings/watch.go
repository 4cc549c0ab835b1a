package bindings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	defaultDebounce = 200 * time.Millisecond
	maxWatched      = 5000 // folders
)

// Watch loads the set, hands it to changed, and loads again whenever something under the root
// changes, until ctx ends. It blocks; its error is that of the start, or nil once ctx has
// ended.
//
// Each later call of changed has a whole new set, or the last good set and the error that kept
// the folder from being read. A workflow whose edit brings new errors stays in its version from
// before the edit; the set's diagnostics show the errors and say so. Workflows that did not
// change are not read again, and no call is made when nothing changed at all.
func Watch(ctx context.Context, opts Options, changed func(*Set, error)) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch the workflows folder: %w", err)
	}
	defer watcher.Close()
	w := &watch{opts: opts, watcher: watcher, changed: changed, log: opts.logger()}
	if w.opts.Debounce <= 0 {
		w.opts.Debounce = defaultDebounce
	}
	// Watching comes first: what changes during the load is then loaded again.
	w.addFolders()
	if w.current, err = load(ctx, &opts, nil); err != nil {
		return err
	}
	w.current.log(ctx, w.log, slog.LevelDebug) // whoever watches has most often loaded it before
	changed(w.current, nil)
	w.run(ctx)
	return nil
}

type watch struct {
	opts    Options
	watcher *fsnotify.Watcher
	changed func(*Set, error)
	log     *slog.Logger
	current *Set
	failure string // text of the last error, to say it once
}

func (w *watch) run(ctx context.Context) {
	timer := time.NewTimer(w.opts.Debounce)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.watcher.Events:
			if !ok {
				return
			}
			if relevant(e) {
				timer.Reset(w.opts.Debounce)
			}
		case err, ok := <-w.watcher.Errors: // also a queue that ran over
			if !ok {
				return
			}
			w.log.WarnContext(ctx, "watching the workflows folder", "error", err)
			timer.Reset(w.opts.Debounce)
		case <-timer.C:
			w.addFolders()
			w.reload(ctx)
		}
	}
}

// relevant leaves out what Python and editors write beside the files.
func relevant(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	name := filepath.Base(e.Name)
	return name != "__pycache__" && !strings.HasSuffix(name, ".pyc") && !strings.HasSuffix(name, "~")
}

// addFolders watches every folder that has or may get a file of ours. Adding one again is
// free.
func (w *watch) addFolders() {
	if w.opts.Root == "" {
		return
	}
	n := 0
	err := filepath.WalkDir(w.opts.Root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && name != w.opts.Root:
			return nil // vanished meanwhile
		case err != nil:
			return err
		case !e.IsDir():
			return nil
		case name != w.opts.Root && skipped(e.Name()):
			return fs.SkipDir
		}
		if n++; n > maxWatched {
			return fs.SkipAll
		}
		if err := w.watcher.Add(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err //nolint:wrapcheck // logged below
		}
		return nil
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.log.Warn("not every change of the workflows folder will be noticed", "error", err)
	}
}

func (w *watch) reload(ctx context.Context) {
	next, err := load(ctx, &w.opts, w.current)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if err.Error() != w.failure {
			w.failure = err.Error()
			w.changed(w.current, fmt.Errorf("the workflows of before stay in use: %w", err))
		}
		return
	}
	recovered := w.failure != ""
	w.failure = ""
	if !recovered && w.current.equal(next) {
		return
	}
	w.current = next
	next.log(ctx, w.log, slog.LevelInfo)
	w.changed(next, nil)
}
