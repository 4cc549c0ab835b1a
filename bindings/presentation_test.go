package bindings_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
)

func TestPresentationOfAToolIsFromItsWorkflowElseFromAnyOther(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, manifest := range map[string]string{
		"One": `models: {M: {type: object}}
agents: {A: {model: M}}
tools:
  - {name: plan, agent: A, kind: go, ui: {component: PlanCard, mode: artifact}}
  - {name: quiet, agent: A, kind: go}
`,
		"Two": `models: {M: {type: object}}
agents: {A: {model: M}}
tools:
  - {name: plan, agent: A, kind: go, ui: {component: OtherCard, mode: inline}}
  - {name: key, agent: A, kind: go, ui: {component: KeyForm, mode: inline}}
`,
	} {
		require.NoError(t, os.Mkdir(filepath.Join(root, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, name, "oneturn.yaml"), []byte(manifest), 0o600))
	}
	set, err := bindings.Load(t.Context(), bindings.Options{Root: root})
	require.NoError(t, err)
	for _, c := range []struct{ workflow, tool, component, display string }{
		{"One", "plan", "PlanCard", "artifact"},
		{"one", "PlanCard", "PlanCard", "artifact"},
		{"Two", "plan", "OtherCard", "inline"},
		{"One", "key", "KeyForm", "inline"},
		{"Unknown", "key", "KeyForm", "inline"},
		{"One", "quiet", "", ""},
		{"One", "", "", ""},
	} {
		component, display := set.Presentation(c.workflow, c.tool)
		require.Equal(t, []string{c.component, c.display}, []string{component, display}, "%s %s", c.workflow, c.tool)
	}
}
