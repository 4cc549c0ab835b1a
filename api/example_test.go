package api_test

import (
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/api"
)

// The body of a request for one question of a chat, and a reply.
func Example() {
	request, err := json.Marshal(api.QuestionsRequest{Chat: "c1", ToolCallID: "t1/1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(request))

	reply := `{"questions":[{"sequence":2,"state":"open","tool_call_id":"t1/1","component_type":"Approval"}]}`
	var page api.Questions
	if err := json.Unmarshal([]byte(reply), &page); err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range page.Questions {
		fmt.Println(q.ToolCallID, q.Component, q.State == api.Open)
	}
	// Output:
	// {"chat_id":"c1","tool_call_id":"t1/1"}
	// t1/1 Approval true
}
