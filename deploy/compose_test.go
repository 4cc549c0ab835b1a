// Package deploy_test checks the container files against the flags that the commands accept, because a wrong
// flag would otherwise be found only when the containers start.
package deploy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// compose is the part of docker-compose.yml that the tests read.
type compose struct {
	Services map[string]service `yaml:"services"`
	Volumes  map[string]any     `yaml:"volumes"`
}

type service struct {
	Build           *build                 `yaml:"build"`
	CapDrop         []string               `yaml:"cap_drop"`
	Command         []string               `yaml:"command"`
	DependsOn       map[string]dependency  `yaml:"depends_on"`
	Deploy          struct{ Replicas int } `yaml:"deploy"`
	Environment     map[string]string      `yaml:"environment"`
	Expose          []string               `yaml:"expose"`
	Healthcheck     *healthcheck           `yaml:"healthcheck"`
	Image           string                 `yaml:"image"`
	MemLimit        string                 `yaml:"mem_limit"`
	Ports           []string               `yaml:"ports"`
	ReadOnly        bool                   `yaml:"read_only"`
	Restart         string                 `yaml:"restart"`
	SecurityOpt     []string               `yaml:"security_opt"`
	StopGracePeriod time.Duration          `yaml:"stop_grace_period"`
	User            string                 `yaml:"user"`
	Volumes         []any                  `yaml:"volumes"`
}

type build struct {
	Target string `yaml:"target"`
}

type dependency struct {
	Condition string `yaml:"condition"`
}

type healthcheck struct {
	Test []string `yaml:"test"`
}

// load reads docker-compose.yml with every variable at its default.
func load(t *testing.T) compose {
	t.Helper()
	var c compose
	require.NoError(t, yaml.Unmarshal([]byte(defaults(read(t, "../docker-compose.yml"))), &c))
	require.NotEmpty(t, c.Services)
	return c
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// password stands for the one that has to be set.
const password = "pw-of-the-test"

// defaults replaces ${NAME:-value} by value, and the password that has to be set.
func defaults(text string) string {
	text = regexp.MustCompile(`\$\{ONETURN_NATS_PASSWORD:\?[^}]+\}`).ReplaceAllString(text, password)
	return regexp.MustCompile(`\$\{[A-Z_]+:-([^}]*)\}`).ReplaceAllString(text, "$1")
}

func TestEveryVariableOfTheComposeFileHasADefaultButThePassword(t *testing.T) {
	t.Parallel()
	require.NotContains(t, defaults(read(t, "../docker-compose.yml")), "$")
}

func TestEveryServiceIsHardened(t *testing.T) {
	t.Parallel()
	for name, s := range load(t).Services {
		require.True(t, s.ReadOnly, name)
		require.Equal(t, []string{"ALL"}, s.CapDrop, name)
		require.Contains(t, s.SecurityOpt, "no-new-privileges:true", name)
	}
}

func TestPublishedPortsStayOnLoopbackByDefault(t *testing.T) {
	t.Parallel()
	for name, s := range load(t).Services {
		for _, port := range s.Ports {
			require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s publishes %s", name, port)
		}
	}
}

func TestEveryServiceHasABoundOfMemory(t *testing.T) {
	t.Parallel()
	for name, s := range load(t).Services {
		require.Regexp(t, `^[1-9]\d*[mg]$`, s.MemLimit, name)
	}
}

// Images of the Dockerfile have their user, see TestEveryImageThatRunsIsUnprivileged.
func TestNoServiceThatIsReachedRunsAsRoot(t *testing.T) {
	t.Parallel()
	for name, s := range load(t).Services {
		if s.Build == nil && name != "nats-volume" {
			require.Equal(t, "65532:65532", s.User, name)
		}
	}
	c := load(t)
	require.Equal(t, "service_completed_successfully", c.Services["nats"].DependsOn["nats-volume"].Condition)
	require.Contains(t, c.Services["nats-volume"].Volumes, "nats-data:/data")
}

// pinned matches an image with a full version in its tag.
func pinned() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9/-]+:\d+\.\d+\.\d+(-[a-z0-9-]+)?$`)
}

func TestEveryImageIsPinned(t *testing.T) {
	t.Parallel()
	for name, s := range load(t).Services {
		if s.Build == nil {
			require.Regexp(t, pinned(), s.Image, name)
		}
	}
}

func TestImagesAreBuiltWithTheReleasesOfTheModule(t *testing.T) {
	t.Parallel()
	mod := read(t, "../go.mod")
	goLine := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(mod)
	require.NotNil(t, goLine)
	require.Contains(t, read(t, "../Dockerfile"), " golang:"+goLine[1]+".")

	server := regexp.MustCompile(`nats-server/v2 v(\S+)`).FindStringSubmatch(mod)
	require.NotNil(t, server)
	require.Equal(t, "nats:"+server[1]+"-alpine", load(t).Services["nats"].Image)
}

func TestServicesStartInOrder(t *testing.T) {
	t.Parallel()
	c := load(t)
	for name, s := range c.Services {
		for on, d := range s.DependsOn {
			target, ok := c.Services[on]
			require.True(t, ok, "%s depends on %s, which is not a service", name, on)
			switch d.Condition {
			case "service_healthy":
				require.NotNil(t, target.Healthcheck, "%s waits for the health of %s, which has no check", name, on)
			case "service_completed_successfully":
				require.Equal(t, "no", target.Restart, "%s waits for the end of %s, which restarts", name, on)
			default:
				require.Fail(t, "no condition", "%s depends on %s with condition %q", name, on, d.Condition)
			}
		}
	}
	require.Equal(t, "service_healthy", c.Services["provision"].DependsOn["nats"].Condition)
	require.Equal(t, "service_completed_successfully", c.Services["worker"].DependsOn["provision"].Condition)
	require.GreaterOrEqual(t, c.Services["worker"].Deploy.Replicas, 2)
}

func TestMountedFilesExist(t *testing.T) {
	t.Parallel()
	c := load(t)
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			source := ""
			switch v := v.(type) {
			case string:
				source, _, _ = strings.Cut(v, ":")
			case map[string]any:
				source, _ = v["source"].(string)
			}
			require.NotEmpty(t, source, name)
			if !strings.HasPrefix(source, "./") {
				require.Contains(t, c.Volumes, source, name)
				continue
			}
			_, err := os.Stat("../" + source)
			require.NoError(t, err, "%s mounts %s", name, source)
		}
	}
}
