package bindings_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/diag"
)

func TestTriggerOnTheAnswerToAMisspeltToolIsReported(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `
-- W/oneturn.yaml --
agents: {Editor: {model: Post}}
models: {Post: {type: object}}
tools: [{name: publish, agent: Editor, file: posts.py, function: publish_post, effect: replay, ui: {component: PostCard}}, {name: broken, agent: Editor, kind: telepathy}]
context:
  a: {triggers: [{type: ui_response, tool: Publish}]}
  b: {triggers: [{type: ui_response, tool: publish_pots, response_key: approved}]}
  c: {transitions: [{from: draft, to: done, trigger: {type: ui_response, tool: PostCart}}]}
  by_name: {triggers: [{type: ui_response, tool: publish}]}
  by_function: {triggers: [{type: ui_response, tool: publish_post}]}
  by_component: {triggers: [{type: ui_response, tool: PostCard}]}
  by_component_of_the_code: {triggers: [{type: ui_response, tool: Approval}]}
  of_a_tool_with_errors: {triggers: [{type: ui_response, tool: broken}]}
-- W/tools/posts.py --
def publish_post():
    pass
`))
	require.Equal(t, []string{
		`W/oneturn.yaml:5: warning: a trigger of context variable a names the unknown tool or component "Publish" [unknown_tool]: did you mean "publish"?`,
		`W/oneturn.yaml:6: warning: a trigger of context variable b names the unknown tool or component "publish_pots" [unknown_tool]: did you mean "publish_post"?`,
		`W/oneturn.yaml:7: warning: a trigger of context variable c names the unknown tool or component "PostCart" [unknown_tool]: did you mean "PostCard"?`,
	}, lines(set, diag.SeverityWarning))
}
