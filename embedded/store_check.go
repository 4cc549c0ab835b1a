package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// ErrIncomplete means that the store holds streams which the server could not open.
var ErrIncomplete = errors.New("the store holds streams that the server could not open")

// ErrOtherAccount means that the store holds the streams of another account than the one to serve.
var ErrOtherAccount = errors.New("the store belongs to another account")

// complete refuses a server that knows less streams than its store holds. It leaves out a
// stream that it fails to open, on a full disk for example, and only logs that: an empty one would be
// made in its place, and its records would be lost.
func (s *Server) complete(ns *server.Server) error {
	if s.lock == nil {
		return nil
	}
	account := cmp.Or(s.account, server.DEFAULT_GLOBAL_ACCOUNT)
	if err := s.otherAccount(ns.JetStreamConfig().StoreDir, account); err != nil {
		return err
	}
	dir := filepath.Join(ns.JetStreamConfig().StoreDir, account, "streams")
	folders, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("embedded server: look into the store: %w", err)
	}
	info, err := ns.Jsz(&server.JSzOptions{Accounts: true, Streams: true, Account: account})
	if err != nil {
		return fmt.Errorf("embedded server: look at the streams: %w", err)
	}
	known := map[string]bool{}
	for _, account := range info.AccountDetails {
		for _, stream := range account.Streams {
			known[stream.Name] = true
		}
	}
	var lost []string
	for _, folder := range folders {
		// The folder of a stream that is being deleted begins with a dot.
		if name := folder.Name(); !known[name] && !strings.HasPrefix(name, ".") && holdsStream(filepath.Join(dir, name)) {
			lost = append(lost, name)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	room := "an unknown number of bytes"
	if free, err := s.free(s.store); err == nil {
		room = fmt.Sprintf("%d bytes", free)
	}
	return fmt.Errorf("embedded server: store %q: %w: %s; nothing was made in their place. The disk has room for %s: make room if it is full, "+
		"and start again. Else see the server's warnings in the log, and restore the store from a backup", s.store, ErrIncomplete,
		strings.Join(lost, ", "), room)
}

// otherAccount refuses a store whose streams belong to another account: they would not be seen, and
// an empty journal would be made next to them.
func (s *Server) otherAccount(dir, account string) error {
	folders, err := filepath.Glob(filepath.Join(dir, "*", "streams", "*"))
	if err != nil {
		return fmt.Errorf("embedded server: look into the store: %w", err)
	}
	for _, folder := range folders {
		if other := filepath.Base(filepath.Dir(filepath.Dir(folder))); other != account && holdsStream(folder) {
			return fmt.Errorf("embedded server: store %q: %w: it has streams of account %q, not of %q; start it with the file of accounts, "+
				"or without one, as when the store was made, or choose another directory with --store DIR", s.store, ErrOtherAccount, other, account)
		}
	}
	return nil
}

// holdsStream reports whether a folder belongs to a stream that was made: its description was
// written to the end, or there are records. Of one whose making failed there is neither.
func holdsStream(folder string) bool {
	if holdsBytes(filepath.Join(folder, "meta.inf")) && holdsBytes(filepath.Join(folder, "meta.sum")) {
		return true
	}
	messages := filepath.Join(folder, "msgs")
	files, _ := os.ReadDir(messages) // where there is no folder there are no records
	return slices.ContainsFunc(files, func(f fs.DirEntry) bool {
		return filepath.Ext(f.Name()) == ".blk" && holdsBytes(filepath.Join(messages, f.Name()))
	})
}

func holdsBytes(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Size() > 0
}
