package secrets_test

import (
	"encoding/json"
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

	var s secrets.Scrubber
	s.AddSecret(answer, nil) // before the tool is handed it
	fmt.Println(string(s.JSON(json.RawMessage(`{"used":"sk-4711-swordfish","ok":true}`))))
	fmt.Println(s.Text("GET /?key=sk-4711-swordfish: 403"))
	fmt.Println(moved)
	// Output:
	// {"ok":true,"used":"[secret]"}
	// GET /?key=[secret]: 403
	// open a secret answer: state_corrupt: the stored answer cannot be opened: it was changed, or belongs to another record
}
