package docs_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A page names code of a file as `A`, `B` and `C` in [NAME.go](path), as `A` ([NAME.go](path)) and as [`A`](path). Tests of a
// file follow its link.
var (
	quoted      = regexp.MustCompile("`([^`]+)`")
	namesInFile = regexp.MustCompile("((?:`[\\w.]+`(?:, | and ))*`[\\w.]+`)(?: in | \\()\\[[\\w/]+\\.go\\]\\(([^)#]+\\.go)\\)")
	namedLink   = regexp.MustCompile("\\[(`[\\w.]+`)\\]\\(([^)#]+\\.go)\\)")
	testsOfFile = regexp.MustCompile("\\[[\\w/.]+\\]\\(([^)#]+_test\\.go)\\) ((?:`Test\\w+`(?:, | and ))*`Test\\w+`)")
)

func TestCodeThatPagesNameIsInTheFileThatTheyName(t *testing.T) {
	t.Parallel()
	declared := map[string]*goPackage{}
	checked := 0
	check := func(page, names, link string) {
		file := filepath.Join(filepath.Dir(page), link)
		in := declared[file]
		if in == nil {
			in = declaredIn(t, file)
			declared[file] = in
		}
		for _, m := range quoted.FindAllStringSubmatch(names, -1) {
			checked++
			if !in.declares(m[1]) {
				t.Errorf("%s: %s does not declare %s", page, link, m[1])
			}
		}
	}
	for page, text := range pages(t) {
		text = strings.Join(strings.Fields(text), " ")
		for _, pattern := range []*regexp.Regexp{namesInFile, namedLink} {
			for _, m := range pattern.FindAllStringSubmatch(text, -1) {
				check(page, m[1], m[2])
			}
		}
		for _, m := range testsOfFile.FindAllStringSubmatch(text, -1) {
			check(page, m[2], m[1])
		}
	}
	require.Greater(t, checked, 100)
}

func declaredIn(t *testing.T, file string) *goPackage {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	p := &goPackage{names: map[string]bool{}}
	p.declare(parsed)
	return p
}

// declares reports whether a name is declared, with or without the type that it is a member of.
func (p *goPackage) declares(name string) bool {
	for known := range p.names {
		if known == name || strings.HasSuffix(known, "."+name) {
			return true
		}
	}
	return false
}
