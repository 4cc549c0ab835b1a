package bindings

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"
)

// [Watch] waits for changes below the root (watch_tree.go), lets them settle, loads again and passes the new set
// on. After a load that fails it passes the error with the last good set; the next change loads again.

const (
	defaultDebounce = 200 * time.Millisecond
	maxDebounce     = 2 * time.Second // a folder that is never still is read this often
	maxWatched      = 5000            // folders
)

// Watch loads the set, passes it to changed, and loads again whenever a manifest, a Python file
// or a folder under the root changes, until ctx ends. The root may be replaced as a whole, and
// symbolic links on the way to it may be switched. It blocks; its error is the error of the
// start, or nil once ctx has ended.
//
// Each later call of changed has a whole new set, or the last good set and the error that kept
// the folder from being read. A workflow whose edit brings new errors stays in its version from
// before the edit; the set's diagnostics show the errors and the kept version. Workflows that
// did not change are not read again, and no call is made when nothing changed at all.
func Watch(ctx context.Context, opts Options, changed func(*Set, error)) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch the workflows folder: %w", err)
	}
	defer watcher.Close()
	w := &watch{opts: opts, watcher: watcher, changed: changed, log: opts.logger(), folders: map[string]os.FileInfo{}}
	if w.opts.Debounce <= 0 {
		w.opts.Debounce = defaultDebounce
	}
	// Watching comes first: what changes during the load is then loaded again.
	w.follow()
	if w.current, err = load(ctx, &opts, opts.From); err != nil {
		return err
	}
	w.current.log(ctx, w.log, slog.LevelDebug) // the caller has most often loaded it before
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
	failure string // text of the last error, to report it once

	folders map[string]os.FileInfo // that are watched, as they were when they were added
	gates   map[string]string      // names at which the root may be replaced, see [gates]
	inside  string                 // the root with all links resolved; "" while it does not exist
}

func (w *watch) run(ctx context.Context) {
	timer := time.NewTimer(w.opts.Debounce)
	timer.Stop()
	defer timer.Stop()
	var due time.Time // when to read at the latest; zero if there is nothing to read
	wait := func() {
		if due.IsZero() {
			due = time.Now().Add(max(maxDebounce, w.opts.Debounce))
		}
		timer.Reset(min(w.opts.Debounce, time.Until(due)))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.watcher.Events:
			if !ok {
				return
			}
			if w.relevant(e) {
				wait()
			}
		case err, ok := <-w.watcher.Errors: // also a queue that ran over
			if !ok {
				return
			}
			w.log.WarnContext(ctx, "watching the workflows folder", "error", err)
			wait()
		case <-timer.C:
			due = time.Time{}
			w.follow()
			w.reload(ctx)
		}
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
	if !recovered && w.current.Equal(next) {
		return
	}
	w.current = next
	next.log(ctx, w.log, slog.LevelInfo)
	w.changed(next, nil)
}
