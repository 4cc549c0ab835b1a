package bindings

import "time"

// Scope says between whom results are shared in the cache. A tenant's results are its own in
// every scope but the last.
type Scope string

// Scopes of the cache.
const (
	ScopeUser   Scope = "user"   // one user; a turn that names none is not cached
	ScopeChat   Scope = "chat"   // one chat; the default
	ScopeTenant Scope = "tenant" // one tenant
	ScopeGlobal Scope = "global" // everybody: for what depends on the arguments alone
)

func scopes() []string {
	return []string{string(ScopeUser), string(ScopeChat), string(ScopeTenant), string(ScopeGlobal)}
}

// Cache says how long a result is good for. The zero value is not at all. Only tools whose
// effect is none may have one.
type Cache struct {
	TTL   time.Duration
	Scope Scope
}
