package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

const (
	// reopenCheck is how often a server whose disk was full looks for room.
	reopenCheck = time.Second
	// reopenRoom is how much room there has to be, in bytes: some blocks of its files.
	reopenRoom = 32 << 20
)

// reportsFullDisk reports whether a line of the server's log is about a full disk.
func reportsFullDisk(line string) bool {
	return strings.Contains(line, syscall.ENOSPC.Error()) || strings.Contains(line, "There is not enough space on the disk")
}

// StoreUse returns the bytes that the server stores on file, and how many it may store: its
// limit, or what the disk has room for if that is less. The limit is -1 for a memory store.
func (s *Server) StoreUse() (used, limit int64, err error) {
	if s.lock == nil {
		return 0, -1, nil
	}
	info, err := s.ns.Load().Jsz(nil)
	if err != nil {
		return 0, 0, fmt.Errorf("embedded server: use of the store: %w", err)
	}
	if info.Disabled {
		return 0, 0, errors.New("embedded server: use of the store: the store is closed")
	}
	free, err := s.free(s.store)
	if err != nil {
		return 0, 0, fmt.Errorf("embedded server: use of the store: %w", err)
	}
	used = int64(min(info.Store, 1<<62))
	return used, min(info.Config.MaxStore, used+free), nil
}

// watchFull reopens the store when a full disk has room again: until then the server stores nothing in
// a stream to which a write has failed, without a line in its log. It also reopens the store when the
// disk has room for clearly more than when the limit was set.
func (s *Server) watchFull(ctx context.Context) {
	tick := time.NewTicker(reopenCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		full := s.log.full.Load()
		if !full && !s.limitTooLow() {
			continue
		}
		if free, err := s.free(s.store); err != nil || free < s.minFree {
			continue
		}
		s.log.full.Store(false)
		if err := s.reopen(ctx); err != nil {
			s.log.full.Store(true)
			s.log.log.Error("the disk has room again, but the store cannot be opened; it is retried", "err", err)
			continue
		}
		s.log.log.Warn("the disk has room again: the store was reopened and takes records")
	}
}

// Reopen ends the server and starts it again on the same store and address. Clients connect
// again once it is ready: before that, a server denies that there are streams which it is
// about to find, and a worker would take its journal for lost. What was stored stays. It fails
// once the server was stopped.
func (s *Server) Reopen() error { return s.reopen(context.Background()) }

func (s *Server) reopen(ctx context.Context) error {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.ended { // the store is unlocked: another process may have it
		return errors.New("embedded server: open the store: the server was stopped")
	}
	s.endServer()
	select {
	case err := <-s.log.fatal:
		s.log.log.Debug("an attempt before has failed", "err", err)
	default:
	}
	if err := s.startServer(ctx); err != nil {
		s.endServer() // a server that lacks streams must not be used
		return err
	}
	return nil
}
