package config

import (
	"io"
	"log/slog"
)

// Logger writes to w as the settings specify.
func (o *Output) Logger(w io.Writer) *slog.Logger { return Logger(o.LogLevel, o.LogsAsJSON, w) }

// Logger writes to w as text or JSON. Level is one of debug, info, warn and error; anything
// else is info.
func Logger(level string, asJSON bool, w io.Writer) *slog.Logger {
	var least slog.Level // info
	if err := least.UnmarshalText([]byte(level)); err != nil {
		least = slog.LevelInfo
	}
	opts := &slog.HandlerOptions{Level: least}
	if asJSON {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
