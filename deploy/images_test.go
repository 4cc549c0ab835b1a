package deploy_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// stage is what one stage of the Dockerfile ends with, including what it takes over from the
// stage that it starts from.
type stage struct {
	base       string
	entrypoint bool
	env        map[string]string
	user       string
}

// stages reads the Dockerfile by name of the stage.
func stages(t *testing.T) map[string]stage {
	t.Helper()
	from := regexp.MustCompile(`^FROM (?:--platform=\S+ )?(\S+) AS (\S+)$`)
	all, name := map[string]stage{}, ""
	for line := range strings.Lines(read(t, "../Dockerfile")) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		s := all[name]
		switch word {
		case "FROM":
			m := from.FindStringSubmatch(strings.TrimSpace(line))
			require.NotNil(t, m, line)
			name, s = m[2], all[m[1]]
			s.base, s.env = m[1], maps.Clone(s.env)
			if s.env == nil {
				s.env = map[string]string{}
			}
		case "ENTRYPOINT":
			s.entrypoint = true
		case "ENV":
			for pair := range strings.FieldsSeq(rest) {
				key, value, ok := strings.Cut(pair, "=")
				require.True(t, ok, line)
				s.env[key] = value
			}
		case "USER":
			s.user = rest
		default:
			continue
		}
		all[name] = s
	}
	require.NotEmpty(t, all)
	return all
}

func TestEveryImageThatRunsIsUnprivileged(t *testing.T) {
	t.Parallel()
	for name, s := range stages(t) {
		if s.entrypoint {
			require.Equal(t, "65532:65532", s.user, name)
		}
	}
}

func TestEveryBaseImageIsPinned(t *testing.T) {
	t.Parallel()
	all := stages(t)
	for name, s := range all {
		if _, ok := all[s.base]; !ok && s.base != "scratch" {
			require.Regexp(t, pinned(), s.base, name)
		}
	}
}

func TestComposeBuildsStagesThatRun(t *testing.T) {
	t.Parallel()
	all := stages(t)
	for name, s := range load(t).Services {
		if s.Build != nil {
			require.True(t, all[s.Build.Target].entrypoint, "%s builds the stage %q, which has no entrypoint", name, s.Build.Target)
		}
	}
}
