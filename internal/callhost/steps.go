package callhost

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
)

// Steps are the results of steps in memory, for hosts without a journal. It has the methods for steps of
// [tools.Host]. The zero value is ready.
type Steps struct {
	mu      sync.Mutex
	results map[string]json.RawMessage
}

// StepResult implements [tools.Host].
func (s *Steps) StepResult(ctx context.Context, name string) (result json.RawMessage, done bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	result, done = s.results[name]
	return result, done, ctx.Err()
}

// StoreStep implements [tools.Host].
func (s *Steps) StoreStep(ctx context.Context, name string, result json.RawMessage) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, done := s.results[name]; done {
		return first, nil
	}
	if s.results == nil {
		s.results = map[string]json.RawMessage{}
	}
	s.results[name] = bytes.Clone(result)
	return result, nil
}
