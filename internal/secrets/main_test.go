package secrets_test

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/internal/secrets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	keys, err := secrets.Parse([]byte(secrets.NewKey()))
	if err != nil {
		fmt.Println(err)
		return
	}
	const name = "p.acme.chat.t1.0.answer.key" // the journal key of the answer
	box, _ := keys.Seal(name, []byte(`{"api_key":"sk-4711-swordfish"}`))
	answer, _ := keys.Open(name, box)
	_, moved := keys.Open("p.acme.chat.t1.0.answer.other", box)
	fmt.Println(string(answer))
	fmt.Println(moved)
	// Output:
	// {"api_key":"sk-4711-swordfish"}
	// open a secret answer: state_corrupt: the stored answer cannot be opened: it was changed, or belongs to another record
}
