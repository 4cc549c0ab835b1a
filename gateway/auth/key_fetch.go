package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/oneturn/oneturn/diag"
)

// Bounds of a key set.
const (
	maxKeySet    = 1 << 20
	maxRedirects = 3
	minRSABits   = 2048
	maxRSABits   = 8192
)

// keySource reads the key set of an issuer.
type keySource struct {
	url    string
	client *http.Client
}

// newKeySource checks the address of a key set, since its keys decide who everyone is: another program must not be able to
// replace them on the way.
func newKeySource(address string, allowHTTP bool) (*keySource, error) {
	fail := func(fix, format string, args ...any) (*keySource, error) {
		return nil, diag.Errorf(opConfigure, "jwks", fix, format, args...)
	}
	const example = "use for example https://issuer.example/.well-known/jwks.json"
	u, err := url.Parse(address)
	switch {
	case address == "":
		return fail(example, "is missing")
	case err != nil || u.Host == "" || u.Opaque != "":
		return fail(example, "is not a URL") // without its text, which may have a password
	case u.User != nil:
		return fail("remove it from the URL: key sets are public", "has a user name")
	case u.Scheme == "http" && !allowHTTP && !isLoopback(u.Hostname()):
		return fail("use https, or allow http if the network is trusted", "%s has no https", u)
	case u.Scheme != "https" && u.Scheme != "http":
		return fail(example, "%s is not an https URL", u)
	}
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		ResponseHeaderTimeout:  readTimeout,
		TLSHandshakeTimeout:    readTimeout,
		MaxResponseHeaderBytes: 64 << 10,
		DisableKeepAlives:      true, // the next read is minutes later
		ForceAttemptHTTP2:      true,
	}
	return &keySource{u.String(), &http.Client{Transport: transport, Timeout: readTimeout, CheckRedirect: sameHost}}, nil
}

// isLoopback reports whether a host, without its port, is this machine by its name or address.
func isLoopback(host string) bool {
	if strings.ToLower(host) == "localhost" { // EqualFold accepts ſ as an s
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Zone() == "" && addr.IsLoopback()
}

// sameHost follows redirects within the host and the scheme of the first request alone.
func sameHost(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case r.URL.Host != first.Host || r.URL.Scheme != first.Scheme:
		return errors.New("redirect to another host: configure the address that it leads to")
	}
	return nil
}

// read returns the keys that may sign tokens, by their ids, and how many others there are.
func (s *keySource) read(ctx context.Context) (keys map[string][]publicKey, skipped int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil) //nolint:gosec // the operator names the address
	if err != nil {
		return nil, 0, fmt.Errorf("read the key set: %w", err)
	}
	r.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := s.client.Do(r) //nolint:gosec // as above
	if err != nil {
		return nil, 0, fmt.Errorf("read the key set: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("read the key set: %s has status %d: expected 200", s.url, resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxKeySet+1))
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("read the key set: %w", err)
	case len(data) > maxKeySet:
		return nil, 0, fmt.Errorf("read the key set: %s has more than %d bytes", s.url, maxKeySet)
	}
	return parseKeySet(data)
}

// parseKeySet skips keys that are not for signatures, weak ones and kinds that it does not know: other users of the
// issuer may need them. A set without any other key is an error, so that the keys before it stay in use.
func parseKeySet(data []byte) (keys map[string][]publicKey, skipped int, err error) {
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, 0, errors.New("the key set is not a JSON object with a list of keys: check its address")
	}
	keys = map[string][]publicKey{}
	for _, value := range set.Keys {
		kid, key, ok := parseKey(value)
		if !ok {
			skipped++
			continue
		}
		keys[kid] = append(keys[kid], key)
	}
	if len(keys) == 0 {
		return nil, skipped, fmt.Errorf("the key set has no key for RS256, PS256, ES256 or EdDSA with a kid, and %d others: check its address", skipped)
	}
	return keys, skipped, nil
}

func parseKey(value jsontext.Value) (kid string, key publicKey, ok bool) {
	var use struct {
		Ops []string `json:"key_ops"`
	}
	var k jose.JSONWebKey
	switch {
	case json.Unmarshal(value, &use) != nil || use.Ops != nil && !slices.Contains(use.Ops, "verify"):
		return "", publicKey{}, false
	case k.UnmarshalJSON(value) != nil || k.KeyID == "" || k.Use != "" && k.Use != "sig":
		return "", publicKey{}, false
	}
	switch public := k.Key.(type) { // private and symmetric keys are of other types
	case *rsa.PublicKey:
		ok = public.N.BitLen() >= minRSABits && public.N.BitLen() <= maxRSABits
	case *ecdsa.PublicKey:
		ok = public.Curve == elliptic.P256()
	case ed25519.PublicKey:
		ok = true
	}
	return k.KeyID, publicKey{k.Algorithm, k.Key}, ok
}
