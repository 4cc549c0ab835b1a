package approval_test

import (
	"testing"

	"github.com/oneturn/oneturn/turntest"
)

func TestMain(m *testing.M) { turntest.VerifyNoLeaks(m) }
