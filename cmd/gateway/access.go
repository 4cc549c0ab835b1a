package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/gateway/auth"
)

// access is who may use the gateway, and what has to be closed.
type access struct {
	auth.Authenticator

	close func()
}

// Ready reports why no token can be checked yet.
func (a *access) Ready() error { return auth.Ready(a.Authenticator) }

// newAccess makes the authenticators that the settings ask for: static tokens are tried first, since they need no issuer.
func newAccess(cfg *config.Gateway, logger *slog.Logger) (*access, error) {
	if cfg.Dev {
		origins, err := auth.NewOrigins(cfg.Origins)
		if err != nil {
			return nil, fmt.Errorf("--origins: %w", err)
		}
		dev, err := auth.NewDevelopment(cfg.Listen, origins)
		if err != nil {
			return nil, fmt.Errorf("--dev: %w", withoutPlace(err))
		}
		return &access{dev, func() {}}, nil
	}
	var chain auth.Chain
	if cfg.Tokens != "" {
		tokens, err := auth.OpenTokens(auth.StaticConfig{Path: cfg.Tokens, Log: logger})
		if err != nil {
			return nil, fmt.Errorf("--tokens: %w", err)
		}
		chain = append(chain, tokens)
	}
	stop := func() {}
	if cfg.JWKS != "" {
		jwt, err := auth.NewJWT(auth.JWTConfig{JWKS: cfg.JWKS, Issuer: cfg.Issuer, Audience: cfg.Audience, AppClaim: cfg.TenantClaim, Log: logger})
		if err != nil {
			return nil, fmt.Errorf("--jwks: %w", err)
		}
		chain, stop = append(chain, jwt), jwt.Close
	}
	return &access{chain, stop}, nil
}

// withoutPlace is a mistake without the name of the field, which the flag before it has.
func withoutPlace(err error) error {
	var mistake *diag.Error
	if !errors.As(err, &mistake) || len(mistake.Findings) != 1 {
		return err
	}
	finding := mistake.Findings[0]
	finding.Field = ""
	return &diag.Error{Findings: []diag.Finding{finding}}
}
