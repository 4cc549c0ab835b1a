package limits

import (
	"context"

	"github.com/oneturn/oneturn/internal/serverclock"
)

// synchronised returns a reading of the clock of the store, so that workers whose clocks differ mean
// the same.
func (l *Limiter) synchronised() (serverclock.Reading, error) {
	ctx, cancel := context.WithTimeout(l.ctx, timeout)
	defer cancel()
	return l.clock.Read(ctx)
}
