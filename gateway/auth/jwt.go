package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"log/slog"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/oneturn/oneturn/diag"
)

// DefaultAppClaim is the claim that has the tenants of a token.
const DefaultAppClaim = "app_id"

// Leeway is how far the clocks of the issuer and of the gateway may differ.
const Leeway = 5 * time.Second

// algorithms are the ones that a token may be signed with. None of them takes a public key as a shared secret.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA}
}

// JWTConfig configures [NewJWT].
type JWTConfig struct {
	JWKS      string // URL of the keys of the issuer: https, or http on the same machine
	AllowHTTP bool   // also read the keys by http from other machines: the network must be trusted
	Issuer    string // the claim iss of every token
	Audience  string // is in the claim aud of every token
	AppClaim  string // the claim with the tenants; default [DefaultAppClaim]

	Now func() time.Time // default [time.Now]
	Log *slog.Logger     // default: none
}

// JWT authenticates tokens of one issuer, signed with one of its published keys by RS256, PS256, ES256 or EdDSA. The
// claims:
//
//	iss, aud, exp  required; exp and nbf are checked with a leeway of 5 s
//	sub            required, the user
//	app_id         required, the tenant or a list of tenants
//	chat_id        optional, the only chat that may be used, or a list
//	workflows      optional, the only workflow that may be used, or a list
//	roles          optional, a role or a list; see [Role]
//
// A claim of another type makes a token invalid, also null: what should restrict a token is never ignored.
type JWT struct {
	cfg  JWTConfig
	keys *keyCache
}

// NewJWT returns an authenticator of tokens. It does not read the keys before the first token, so that a gateway starts
// without its issuer. Call [JWT.Close] when it is no longer used. An error is a [*diag.Error].
func NewJWT(cfg JWTConfig) (*JWT, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.AppClaim == "" {
		cfg.AppClaim = DefaultAppClaim
	}
	source, err := newKeySource(cfg.JWKS, cfg.AllowHTTP)
	if err != nil {
		return nil, err
	}
	if cfg.Issuer == "" {
		return nil, diag.Errorf(opConfigure, "issuer", "set it to the claim iss of your tokens", "is missing")
	}
	if cfg.Audience == "" {
		return nil, diag.Errorf(opConfigure, "audience", "set it to the claim aud of tokens for this gateway: tokens for other services must not be valid here", "is missing")
	}
	return &JWT{cfg: cfg, keys: newKeyCache(source, cfg.Now, cfg.Log)}, nil
}

const opConfigure = "authenticate tokens"

// Close ends a read of the keys that is running. Tokens are refused with [ErrUnavailable] afterwards if their key is not known.
func (j *JWT) Close() { j.keys.close() }

// Ready reports why no token can be checked, nil from the first time that the keys were read. It starts a read, and does not wait.
func (j *JWT) Ready() error { return j.keys.ready() }

// Authenticate implements [Authenticator].
func (j *JWT) Authenticate(ctx context.Context, r Request) (*Identity, error) {
	if r.Token == "" {
		return nil, missing()
	}
	payload, err := j.verify(ctx, r.Token)
	if err != nil {
		return nil, err
	}
	c, err := readClaims(payload, j.cfg.AppClaim)
	if err != nil {
		return nil, err
	}
	if err := c.check(j.cfg.Issuer, j.cfg.Audience, j.cfg.Now()); err != nil {
		return nil, err
	}
	return &Identity{
		Apps: c.apps, User: c.subject, Chats: c.chats, Workflows: c.workflows, Roles: c.roles, Expires: c.expires.Add(Leeway),
	}, nil
}

// verify returns the claims of a token that one of the published keys has signed. The token names the key, never
// contains it: headers with keys, certificates or addresses have no meaning.
func (j *JWT) verify(ctx context.Context, token string) ([]byte, error) {
	if len(token) > MaxToken || !isToken(token) {
		return nil, invalid(ReasonMalformed, "the token is not a JWT")
	}
	// The errors of the library are not returned: they quote the token.
	signed, err := jose.ParseSignedCompact(token, algorithms())
	if err != nil {
		return nil, invalid(ReasonMalformed, "the token is not a JWT that is signed with RS256, PS256, ES256 or EdDSA")
	}
	head := signed.Signatures[0].Header
	for _, name := range []jose.HeaderKey{"crit", "b64"} {
		if _, ok := head.ExtraHeaders[name]; ok {
			return nil, invalid(ReasonMalformed, "the token has header "+string(name)+", which is not supported")
		}
	}
	if !isAccessToken(head.ExtraHeaders[jose.HeaderType]) {
		return nil, invalid(ReasonMalformed, "the token has a type that is not JWT or at+jwt: send an access token")
	}
	if head.KeyID == "" {
		return nil, invalid(ReasonMalformed, "the token has no kid, which names its key")
	}
	keys, err := j.keys.find(ctx, head.KeyID)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if !key.signs(head.Algorithm) {
			continue
		}
		if payload, err := signed.Verify(key.public); err == nil {
			return payload, nil
		}
	}
	return nil, invalid(ReasonSignature, "the signature of the token is not valid")
}

// isAccessToken reports whether the header typ names a token for requests, or is absent: an issuer signs other kinds with the
// same keys, for example to log a user out.
func isAccessToken(typ any) bool {
	name, ok := typ.(string)
	name = strings.TrimPrefix(strings.ToLower(name), "application/")
	return typ == nil || ok && (name == "jwt" || name == "at+jwt")
}

// publicKey is one key of the issuer.
type publicKey struct {
	algorithm string // the only one that it is for; "" for each of its kind
	public    any
}

// signs reports whether the key is for tokens with this algorithm: of its kind, and no other than its own.
func (k publicKey) signs(algorithm string) bool {
	if k.algorithm != "" && k.algorithm != algorithm {
		return false
	}
	switch jose.SignatureAlgorithm(algorithm) {
	case jose.RS256, jose.PS256:
		_, ok := k.public.(*rsa.PublicKey)
		return ok
	case jose.ES256:
		_, ok := k.public.(*ecdsa.PublicKey)
		return ok
	case jose.EdDSA:
		_, ok := k.public.(ed25519.PublicKey)
		return ok
	default:
		return false
	}
}
