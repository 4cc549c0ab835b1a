package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/throttle"
)

// Refusals that show an operator a wrong setting: tokens that are not valid, and pages of origins that are not allowed. The client
// learns no more than a code, so they are counted and logged here. Hostile clients cause them as well: they are counted by reasons that the
// gateway knows, and in each minute a line is logged for each reason, and for each of ten origins.

// check authenticates a request, and reports a token that is refused.
func (g *Gateway) check(r *http.Request, from auth.Source) (*auth.Identity, error) {
	id, err := auth.Check(r, g.o.Auth, from)
	if err != nil {
		g.reportToken(r.Context(), err)
	}
	return id, err
}

// reportToken counts and logs a token that is refused, never the token itself.
func (g *Gateway) reportToken(ctx context.Context, err error) {
	var refused *auth.Error
	if !errors.As(err, &refused) || refused.Status() != http.StatusUnauthorized {
		return
	}
	reason := refused.Reason
	if !slices.Contains(auth.Reasons(), reason) {
		reason = auth.ReasonOther
	}
	g.metrics.tokens.WithLabelValues(string(reason)).Inc()
	level := slog.LevelWarn
	if reason == auth.ReasonMissing || reason == auth.ReasonExpired { // not a wrong setting as a rule
		level = slog.LevelInfo
	}
	g.refused.Log(ctx, g.o.Logger, time.Now(), "token "+string(reason), "", 1, level, "a token is refused", "reason", reason, "problem", refused.Msg)
}

// reportOrigin counts and logs a request from a page whose origin is not allowed. The browser shows its page only that the request
// failed.
func (g *Gateway) reportOrigin(r *http.Request) {
	if g.origins.Check(r) == nil {
		return
	}
	g.metrics.origins.Inc()
	origin := throttle.Cut(r.Header.Get("Origin"))
	g.refused.Log(r.Context(), g.o.Logger, time.Now(), "origin", origin, 1, slog.LevelWarn,
		"a page of an origin that is not allowed has sent a request: if the page is yours, add the origin to --origins", "origin", origin, "host", throttle.Cut(r.Host))
}
