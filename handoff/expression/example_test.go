package expression_test

import (
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/handoff/expression"
)

func Example() {
	condition, err := expression.Parse(`${plan} != None and (${score} >= 7 or not ${strict})`)
	if err != nil {
		fmt.Println(err)
		return
	}
	holds, err := condition.Eval(map[string]any{"plan": map[string]any{}, "score": json.Number("7.5"), "strict": true})
	fmt.Println(holds, err, condition.Variables())

	_, err = expression.Parse(`${plan} === true`)
	fmt.Println(err)
	_, err = condition.Eval(map[string]any{"Plan": nil, "score": nil, "strict": nil})
	fmt.Println(err)
	// Output:
	// true <nil> [plan score strict]
	// character 9: "===" after a value: write ==, != or >=
	// character 1: unknown variable "plan": did you mean ${Plan}?
}
