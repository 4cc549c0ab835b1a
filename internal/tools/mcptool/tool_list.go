package mcptool

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The tools of a server as a session has read them: find reads the list when it lacks a tool, or when the server has
// reported a change (changed); list bounds how long that takes, pages how much the server may send.

// changed records that the tools have to be read again.
func (s *session) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
}

// list reads the tools of the server.
func (s *session) list(ctx context.Context) error {
	s.mu.Lock()
	s.stale = false
	s.mu.Unlock()
	done := async(func() (struct{}, error) { return struct{}{}, s.pages(ctx) })
	select {
	case r := <-done:
		return r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.err
	case <-time.After(cancelTimeout): // a server that does not read keeps the SDK from looking at the context
		s.link.kill()
		return (<-done).err
	}
}

// pages reads the tools page by page.
func (s *session) pages(ctx context.Context) error {
	all := map[string]*described{}
	var cursor string
	size := 0
	for range maxPages {
		page, err := s.client.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return fmt.Errorf("list its tools: %w", err)
		}
		for _, tool := range page.Tools {
			d, err := describe(tool)
			if err != nil {
				return err
			}
			all[tool.Name] = d
			size += len(d.text) + len(d.input) + len(d.output)
		}
		switch {
		case len(all) > maxTools:
			return fmt.Errorf("it has more than %d tools", maxTools)
		case size > maxListBytes:
			return fmt.Errorf("it sends more than %d bytes of tools", maxListBytes)
		case len(page.NextCursor) > maxCursor:
			return fmt.Errorf("the cursor of its list of tools has more than %d bytes", maxCursor)
		case page.NextCursor == "" || page.NextCursor == cursor:
			s.mu.Lock()
			s.tools = all
			s.mu.Unlock()
			return nil
		}
		cursor = page.NextCursor
	}
	return fmt.Errorf("its list of tools has more than %d pages", maxPages)
}

// find returns the current description of a tool; nil if it has none of that name.
func (s *session) find(ctx context.Context, name string) (*described, error) {
	s.mu.Lock()
	found, stale := s.tools[name], s.stale
	s.mu.Unlock()
	if found != nil && !stale { // servers add tools when they know the caller
		return found, nil
	}
	if err := s.list(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[name], nil
}

// names of the tools of the server, sorted.
func (s *session) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.tools))
}
