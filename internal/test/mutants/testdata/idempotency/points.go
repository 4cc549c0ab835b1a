package idempotency

import (
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/subjects"
)

// point is a failpoint inside the rules.
func point(name, effect string, key subjects.Key) { failpoint.Hit(name, effect, key.String()) }
