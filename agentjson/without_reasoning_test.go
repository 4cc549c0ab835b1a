package agentjson_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agentjson"
)

func TestReasoningIsRemovedFromTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"<think>a</think>\n\nParis":                                                                "\n\nParis",
		"<think>a</think><thinking>b</thinking>Paris":                                              "<thinking>b</thinking>Paris", // the second does not begin a line
		"<THINK>a</Think>\n<|begin_of_thought|>b<|end_of_thought|>":                                "\n",
		"\u25c1think\u25b7a\u25c1/think\u25b7Paris":                                                "Paris",
		"a\n</think>\nParis":                                                                       "\nParis",
		"Paris\n  <scratchpad>a</scratchpad>":                                                      "Paris\n  ",
		"Write `<think>` and `</think>` around it.":                                                "Write `<think>` and `</think>` around it.",
		"<|channel|>final<|message|>Paris<|return|>":                                               "Paris",
		"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>Paris": "Paris",
		"1 < 2 [and] so on":                                                                        "1 < 2 [and] so on",
		"":                                                                                         "",
	} {
		got, open := agentjson.WithoutReasoning(text)
		require.False(t, open, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"<think>a":                       "",
		"Paris\n<think>a":                "Paris\n",
		"<|channel|>analysis<|message|>": "",
	} {
		got, open := agentjson.WithoutReasoning(text)
		require.True(t, open, text)
		require.Equal(t, want, got, text)
	}
}

func ExampleWithoutReasoning() {
	fmt.Println(agentjson.WithoutReasoning("<think>Two or three?</think>Three."))
	// Output: Three. false
}
