package bindings

import "time"

// Scope is who shares results in the cache. Tenants share results only in the last scope.
type Scope string

// Scopes of the cache.
const (
	ScopeUser   Scope = "user"   // one user; a turn that names none is not cached
	ScopeChat   Scope = "chat"   // one chat; the default
	ScopeTenant Scope = "tenant" // one tenant
	ScopeGlobal Scope = "global" // all tenants: for what depends on the arguments alone
)

func scopes() []string {
	return []string{string(ScopeUser), string(ScopeChat), string(ScopeTenant), string(ScopeGlobal)}
}

// Cache is how long a result may be used again. The zero value is not at all. Only tools whose
// effect is none may have one.
type Cache struct {
	TTL   time.Duration
	Scope Scope
}
