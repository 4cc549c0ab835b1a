package auth

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxName is the length of the longest name of a user, tenant, chat or workflow in a token, in bytes.
const maxName = 512

// claims are what a token states.
type claims struct {
	issuer    string
	audiences []string
	subject   string
	apps      []string
	chats     []string // nil for all
	workflows []string // nil for all
	roles     []Role
	expires   time.Time
	notBefore time.Time // zero for none
}

// readClaims reads the payload of a token. Names of claims are compared exactly, and none may come twice.
func readClaims(payload []byte, appClaim string) (*claims, error) {
	r := claimReader{appClaim: appClaim}
	if err := json.Unmarshal(payload, &r.values); err != nil || r.values == nil {
		return nil, invalid(ReasonMalformed, "the payload of the token is not a JSON object with unique names")
	}
	c := &claims{
		issuer:    r.one("iss"),
		audiences: r.required("aud"),
		subject:   r.one("sub"),
		apps:      r.tenants(appClaim),
		chats:     r.list("chat_id"),
		workflows: r.list("workflows"),
		expires:   r.time("exp"),
		notBefore: r.time("nbf"),
	}
	for _, role := range r.list("roles") {
		if role := Role(role); role == RoleOperator || role == RoleService {
			c.roles = append(c.roles, role)
		}
	}
	if r.err == nil && c.expires.IsZero() {
		r.fail("exp", "is missing")
	}
	if r.err != nil {
		return nil, r.err
	}
	return c, nil
}

// check decides whether a token is for this gateway, and now.
func (c *claims) check(issuer, audience string, now time.Time) error {
	switch {
	case c.issuer != issuer:
		return invalid(ReasonIssuer, "the token has another issuer: get one from the issuer of this gateway")
	case !slices.Contains(c.audiences, audience):
		return invalid(ReasonAudience, "the token is for another audience: get one for this gateway")
	case !now.Before(c.expires.Add(Leeway)):
		return expired()
	case !c.notBefore.IsZero() && now.Before(c.notBefore.Add(-Leeway)):
		return invalid(ReasonNotYet, "the token is not valid yet")
	}
	return nil
}

// claimReader reads claims one by one and keeps the first error.
type claimReader struct {
	appClaim string // the claim with the tenants

	values map[string]jsontext.Value
	err    error
}

func (r *claimReader) fail(claim, problem string) {
	if r.err == nil {
		r.err = invalid(r.reason(claim), "claim "+strconv.Quote(claim)+" of the token "+problem)
	}
}

// reason is why a token is refused whose claim is missing or wrong.
func (r *claimReader) reason(claim string) Reason {
	switch claim {
	case r.appClaim:
		return ReasonTenant
	case "iss":
		return ReasonIssuer
	case "aud":
		return ReasonAudience
	}
	return ReasonClaims
}

// one reads a claim that must be a name.
func (r *claimReader) one(claim string) string {
	var s string
	value, ok := r.values[claim]
	switch {
	case !ok:
		r.fail(claim, "is missing")
	case value.Kind() != '"' || json.Unmarshal(value, &s) != nil:
		r.fail(claim, "is not a string")
	}
	r.name(claim, s)
	return s
}

// required reads a list that must not be empty.
func (r *claimReader) required(claim string) []string {
	list := r.list(claim)
	if len(list) == 0 {
		r.fail(claim, "is missing or empty")
	}
	return list
}

// tenants reads the claim with the tenants, whose name the gateway decides.
func (r *claimReader) tenants(claim string) []string {
	list := r.list(claim)
	if len(list) == 0 {
		r.fail(claim, "is missing or empty: it has the tenant, and its name is the gateway's --tenant-claim")
	}
	return list
}

// list reads a claim that may be a name or a list of names. It returns nil only if the token does not have it.
func (r *claimReader) list(claim string) []string {
	value, ok := r.values[claim]
	if !ok {
		return nil
	}
	if value.Kind() == '"' {
		return []string{r.one(claim)}
	}
	list := []string{}
	var items []jsontext.Value
	if value.Kind() != '[' || json.Unmarshal(value, &items) != nil {
		r.fail(claim, "is neither a string nor a list of strings")
	}
	for _, item := range items {
		var s string
		if item.Kind() != '"' || json.Unmarshal(item, &s) != nil {
			r.fail(claim, "is neither a string nor a list of strings")
		}
		r.name(claim, s)
		list = append(list, s)
	}
	return list
}

func (r *claimReader) name(claim, s string) {
	if problem := checkName(s); problem != "" {
		r.fail(claim, problem)
	}
}

// checkName returns what is wrong with the name of a user, tenant, chat or workflow, "" for nothing.
func checkName(s string) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > maxName:
		return "is longer than 512 bytes"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "has control characters"
	}
	return ""
}

// lastTime is the last second of year 9999.
const lastTime = 253402300799

// time reads a claim that may be a number of seconds since 1970, also with a fraction.
func (r *claimReader) time(claim string) time.Time {
	value, ok := r.values[claim]
	if !ok {
		return time.Time{}
	}
	var seconds float64
	if value.Kind() != '0' || json.Unmarshal(value, &seconds) != nil || seconds < 1 || seconds > lastTime {
		r.fail(claim, "is not a time in seconds since 1970")
		return time.Time{}
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*float64(time.Second)))
}
