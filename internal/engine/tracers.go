package engine

import (
	"context"
	"log/slog"

	"github.com/oneturn/oneturn/internal/tools"
)

// Tracers returns a tracer that reports to all of list, in this order. Nil entries are left out;
// it returns nil if none remains.
func Tracers(list ...Tracer) Tracer {
	var all tracers
	for _, t := range list {
		if t != nil {
			all = append(all, t)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

type tracers []Tracer

// Begin implements [Spans].
func (l tracers) Begin(ctx context.Context, call *tools.Call) (context.Context, *tools.Call, func(Outcome)) {
	var ends []func(Outcome)
	for _, t := range l {
		s, ok := t.(Spans)
		if !ok {
			continue
		}
		var end func(Outcome)
		if ctx, call, end = s.Begin(ctx, call); end != nil {
			ends = append(ends, end)
		}
	}
	return ctx, call, func(o Outcome) {
		for _, end := range ends {
			end(o)
		}
	}
}

// Emit implements [Tracer].
func (l tracers) Emit(ctx context.Context, name string, attrs ...slog.Attr) {
	for _, t := range l {
		t.Emit(ctx, name, attrs...)
	}
}
