package auth

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// MaxToken is the size of the largest token, in bytes.
const MaxToken = 16 << 10

// Source is where a request may have its token.
type Source int

// The sources.
const (
	HeaderOnly  Source = iota // Authorization: Bearer TOKEN
	EventSource               // also access_token in the query: browsers send no header
	WebSocket                 // also access_token in the query, and the subprotocol bearer.TOKEN
)

const (
	authorization = "Authorization"
	queryToken    = "access_token"
	subprotocols  = "Sec-WebSocket-Protocol"
	tokenProtocol = "bearer."

	tokenCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/"
)

// TakeToken finds the token of a request, "" if there is none, and removes it, so that it reaches neither logs nor other
// programs: the Authorization header, access_token in the query and subprotocols that are a token are gone after it,
// whether they counted or not. The server of the WebSocket therefore answers with another subprotocol, which browsers need:
// a page offers ["oneturn", "bearer.TOKEN"].
//
// A token twice is accepted, different ones are not: a proxy or a log could take another one than the gateway.
// An error is [ErrTokenInvalid].
func TakeToken(r *http.Request, from Source) (string, error) {
	found := headerTokens(r)
	if from != HeaderOnly {
		found = append(found, queryTokens(r)...)
	}
	if from == WebSocket {
		found = append(found, protocolTokens(r)...)
	}
	removeTokens(r)
	found = slices.Compact(found)
	switch {
	case len(found) == 0:
		return "", nil
	case len(found) > 1:
		return "", invalid(ReasonMalformed, "the request has different tokens: send one")
	case len(found[0]) > MaxToken:
		return "", invalid(ReasonMalformed, "the token is too large: it may have 16384 bytes")
	case !isToken(found[0]):
		return "", invalid(ReasonMalformed, "the token has characters that no token has: send it as it was issued")
	}
	return found[0], nil
}

func headerTokens(r *http.Request) []string {
	var found []string
	for _, value := range r.Header[authorization] {
		scheme, token, _ := strings.Cut(strings.Trim(value, " \t"), " ")
		if token = strings.Trim(token, " \t"); token != "" && strings.EqualFold(scheme, "bearer") {
			found = append(found, token)
		}
	}
	return found
}

func queryTokens(r *http.Request) []string {
	values := r.URL.Query()[queryToken] // a malformed part of the query is ignored
	return slices.DeleteFunc(values, func(s string) bool { return s == "" })
}

func protocolTokens(r *http.Request) []string {
	var found []string
	for _, value := range r.Header.Values(subprotocols) {
		for offer := range strings.SplitSeq(value, ",") {
			if token, ok := strings.CutPrefix(strings.Trim(offer, " \t"), tokenProtocol); ok && token != "" {
				found = append(found, token)
			}
		}
	}
	return found
}

// isToken reports whether a text has the form of RFC 6750, section 2.1.
func isToken(s string) bool {
	s = strings.TrimRight(s, "=")
	return s != "" && strings.Trim(s, tokenCharacters) == ""
}

func removeTokens(r *http.Request) {
	r.Header.Del(authorization)
	r.URL.RawQuery = withoutToken(r.URL.RawQuery)
	if path, query, ok := strings.Cut(r.RequestURI, "?"); ok {
		r.RequestURI = path
		if query = withoutToken(query); query != "" {
			r.RequestURI += "?" + query
		}
	}
	r.Form.Del(queryToken)
	if offers := r.Header.Values(subprotocols); len(offers) > 0 {
		var rest []string
		for _, value := range offers {
			for offer := range strings.SplitSeq(value, ",") {
				if offer = strings.Trim(offer, " \t"); offer != "" && !strings.Contains(strings.ToLower(offer), tokenProtocol) {
					rest = append(rest, offer)
				}
			}
		}
		r.Header.Del(subprotocols)
		if len(rest) > 0 {
			r.Header.Set(subprotocols, strings.Join(rest, ", "))
		}
	}
}

// withoutToken removes access_token from a query, in any case and any encoding of its name, and the parts that
// [url.ParseQuery] ignores: one of them may contain a token all the same.
func withoutToken(query string) string {
	if query == "" {
		return ""
	}
	var rest []string
	for part := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(key)
		_, valueErr := url.QueryUnescape(value)
		if err != nil || valueErr != nil || strings.Contains(part, ";") || strings.EqualFold(name, queryToken) {
			continue
		}
		rest = append(rest, part)
	}
	return strings.Join(rest, "&")
}
