package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// limit sets what the server stores at most, if no option does. The server's default would be less than
// what is stored when the disk is full, and then it stores nothing at all.
func (s *Server) limit() error {
	s.options.JetStreamMaxStore = s.maxStore
	if s.maxStore > 0 || s.lock == nil {
		return nil
	}
	free, err := s.free(s.store)
	if err != nil {
		return fmt.Errorf("embedded server: room for the store: %w", err)
	}
	stored, err := storedBytes(s.store)
	if err != nil {
		return err
	}
	s.options.JetStreamMaxStore = s.roomFor(stored, free)
	return nil
}

// roomFor is the limit of a store, by what is in it and what the disk has room for, in bytes.
func (s *Server) roomFor(stored, free int64) int64 { return stored + max(free/4*3, s.minFree) }

// limitTooLow reports whether the limit of the store is what keeps it from growing: it is so near
// that workers pause, and was taken when the disk had less room.
func (s *Server) limitTooLow() bool {
	if s.maxStore > 0 {
		return false
	}
	info, err := s.ns.Load().Jsz(nil)
	if err != nil || info.Disabled {
		return false
	}
	free, err := s.free(s.store)
	if err != nil {
		return false
	}
	const paused, wellBelow = 0.85, 0.8 // of a limit
	used := int64(min(info.Store, 1<<62))
	return float64(used) >= paused*float64(info.Config.MaxStore) && float64(used) < wellBelow*float64(s.roomFor(used, free))
}

// storedBytes is the size of all files of a directory. The server may remove some meanwhile.
func storedBytes(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				sum += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err //nolint:wrapcheck // below
	})
	if err != nil {
		return 0, fmt.Errorf("embedded server: size of the store: %w", err)
	}
	return sum, nil
}
