package mutants_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/mutants"
)

const root = "../../.."

func TestEveryFaultFitsTheSource(t *testing.T) {
	t.Parallel()
	files, err := mutants.Plant(root, mutants.All(), mutants.Points())
	require.NoError(t, err)
	require.Contains(t, files, "idempotency/planted.go")
	points, err := mutants.Plant(root, nil, mutants.Points())
	require.NoError(t, err)
	require.NotContains(t, points, "idempotency/planted.go")
}

func TestFaultsHaveUniqueNamesAndTestsThatFindThem(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range mutants.All() {
		require.False(t, seen[f.Name], "%s is listed twice", f.Name)
		seen[f.Name] = true
		require.NotEmpty(t, f.Breaks, f.Name)
		require.NotEmpty(t, f.CaughtBy, f.Name)
	}
}

// TestReleasedBuildHasNoOverlay is true of every build but those with the overlay.
func TestReleasedBuildHasNoOverlay(t *testing.T) {
	t.Parallel()
	require.False(t, mutants.Overlaid)
}

func TestEditThatDoesNotFitIsAnError(t *testing.T) {
	t.Parallel()
	const file = "internal/test/mutants/fault.go"
	for name, wrong := range map[string]struct {
		edit mutants.Edit
		want string
	}{
		"absent":         {mutants.Edit{From: "const Overlaidd = false", To: `planted("x")`}, "occurs 0 times"},
		"twice":          {mutants.Edit{From: "Edit", To: `planted("x")`}, "want once"},
		"lines":          {mutants.Edit{From: "package mutants", To: "planted(\"x\")\n"}, "number of lines"},
		"unguarded":      {mutants.Edit{From: "package mutants", To: "package mutants"}, "no guard"},
		"other name":     {mutants.Edit{From: "package mutants", To: `planted("y")`}, "another name"},
		"not Go":         {mutants.Edit{From: "package mutants", To: `planted("x")`}, "with its faults"},
		"overlaps":       {mutants.Edit{From: "Overlaid = false", To: `planted("x")`}, "overlaps"},
		"no such file":   {mutants.Edit{File: "nowhere.go", From: "x", To: `planted("x")`}, "nowhere.go"},
		"nearest is 100": {mutants.Edit{From: "type Fault structure {", To: `planted("x")`}, "the most similar line is 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if wrong.edit.File == "" {
				wrong.edit.File = file
			}
			_, err := mutants.Plant(root, []mutants.Fault{{Name: "x", Edits: []mutants.Edit{wrong.edit}}}, nil)
			require.ErrorContains(t, err, wrong.want)
		})
	}
}

func TestOverlayNamesTheFilesByTheirAbsolutePaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name, err := mutants.Write(root, dir, mutants.All(), mutants.Points())
	require.NoError(t, err)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var overlay struct {
		Replace map[string]string `json:"Replace"` //nolint:tagliatelle // the format of the go command
	}
	require.NoError(t, json.Unmarshal(text, &overlay))
	require.NotEmpty(t, overlay.Replace)
	for from, to := range overlay.Replace {
		require.True(t, filepath.IsAbs(from))
		require.FileExists(t, to)
	}
}
