package deliver_test

import (
	"testing"

	"github.com/oneturn/oneturn/oneturntest"
)

func TestMain(m *testing.M) { oneturntest.VerifyNoLeaks(m) }
