package docs_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Names of code and of files, in the pages and in comments, which no compiler checks.

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

var (
	comment       = regexp.MustCompile(`(?m)(?:^|\s)//(.*)$`)
	fileInComment = regexp.MustCompile(`(?:^|[^\w./*-])((?:\w+/)*\w+\.go|docs/[\w-]+\.md)\b`)
	nameInComment = regexp.MustCompile(`\b([A-Za-z]\w*[a-z][A-Z]\w*) in ((?:\w+/)+\w+\.go)\b`)
)

// notFiles are words of comments that only look like files of this repository.
var notFiles = map[string]string{
	"nats.go":                "the client library",
	"pkg.go":                 "pkg.go.dev",
	"NAME.go":                "a placeholder",
	"idempotency/mutants.go": "added by the overlay of the planted faults",
}

// TestFilesThatCommentsNameExist checks names of files in comments, from the top or from the folder of the comment.
func TestFilesThatCommentsNameExist(t *testing.T) {
	t.Parallel()
	checked := 0
	eachGoFile(t, func(path, text string) {
		for _, m := range comment.FindAllStringSubmatch(text, -1) {
			for _, named := range fileInComment.FindAllStringSubmatch(m[1], -1) {
				checked++
				if notFiles[named[1]] == "" && !exists(filepath.Join("..", named[1])) && !exists(filepath.Join(filepath.Dir(path), named[1])) {
					t.Errorf("%s: a comment names %s, which does not exist", path, named[1])
				}
			}
			for _, named := range nameInComment.FindAllStringSubmatch(m[1], -1) {
				code, err := os.ReadFile(filepath.Join("..", named[2]))
				if err != nil || !regexp.MustCompile(`\b`+named[1]+`\b`).Match(code) {
					t.Errorf("%s: a comment names %s in %s, which does not have it", path, named[1], named[2])
				}
			}
		}
	})
	require.Greater(t, checked, 500)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// eachGoFile calls do with the path and text of each Go file of the module.
func eachGoFile(t *testing.T, do func(path, text string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", ".ci", "bin", "testdata"}, d.Name()):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		data, err := os.ReadFile(path)
		do(path, string(data))
		return err
	}))
}
