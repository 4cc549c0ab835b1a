package auth

// Reason names why a token is refused, more exactly than the code that its client gets. It is for metrics and logs of the operator;
// there are few, and none contains a part of a token.
type Reason string

// The reasons.
const (
	ReasonMissing   Reason = "missing"       // the request has no token
	ReasonMalformed Reason = "malformed"     // it is not a token of a kind that is accepted, or there are different ones
	ReasonKey       Reason = "unknown_key"   // the issuer has published no key with its kid
	ReasonSignature Reason = "signature"     // none of the keys with its kid has signed it
	ReasonIssuer    Reason = "issuer"        // its issuer is missing or another one
	ReasonAudience  Reason = "audience"      // it is for other services
	ReasonTenant    Reason = "tenant_claim"  // the claim with its tenants is missing or cannot be read
	ReasonClaims    Reason = "claims"        // another claim is missing or cannot be read
	ReasonNotYet    Reason = "not_yet_valid" // its time has not begun
	ReasonExpired   Reason = "expired"       // its time is over
	ReasonUnknown   Reason = "unknown"       // the file of tokens does not have it
	ReasonOther     Reason = "other"         // an authenticator has refused it without one of these reasons
)

// Reasons returns all of them.
func Reasons() []Reason {
	return []Reason{
		ReasonMissing, ReasonMalformed, ReasonKey, ReasonSignature, ReasonIssuer, ReasonAudience, ReasonTenant, ReasonClaims,
		ReasonNotYet, ReasonExpired, ReasonUnknown, ReasonOther,
	}
}
