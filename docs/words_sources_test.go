package docs_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// match is one place with a private word.
type match struct {
	path, row string // of the file, from the root of the module; of privateWords
	line      int
	text      string // the word with its surroundings
	write     string
}

func (m match) String() string {
	return fmt.Sprintf("%s:%d: %s: …%s… ⇒ %s", m.path, m.line, m.row, m.text, m.write)
}

// notSearched are paths whose words are not ours to choose, are history, or are the word list itself.
var notSearched = []string{
	"CHANGELOG.md", "LICENSE", "docs/notes/", "docs/words_", "testdata/mozaiks/", "internal/test/programcases/testdata/", ".ci/lint/", ".ci/mcp-everything/", "clients/js/node_modules/",
	"clients/js/package-lock.json", "internal/test/frontend/node_modules/", "internal/test/frontend/package-lock.json", "examples/12-frontend/page/agui.", "examples/12-frontend/copilotkit/node_modules/",
	"examples/12-frontend/copilotkit/dist/", "examples/12-frontend/copilotkit/package-lock.json", ".git", "bin/",
}

// searchTree returns all matches, in the order of the files.
func searchTree(t *testing.T) []match {
	t.Helper()
	var files []string
	require.NoError(t, filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		rel := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(name, ".."), string(filepath.Separator)))
		switch {
		case err != nil:
			return err
		case d.IsDir() && hasPrefix(rel+"/", notSearched):
			return fs.SkipDir
		case d.Type().IsRegular() && !hasPrefix(rel, notSearched):
			files = append(files, rel)
		}
		return nil
	}))
	perFile := make([][]match, len(files))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range files {
		g.Go(func() (err error) {
			perFile[i], err = searchFile(file)
			return err
		})
	}
	require.NoError(t, g.Wait())
	return slices.Concat(perFile...)
}

// source is a file while it is searched.
type source struct {
	path  string
	found []match
}

func searchFile(file string) ([]match, error) {
	s := &source{path: file}
	ext := path.Ext(file)
	if !slices.Contains([]string{".go", ".py", ".md", ".json", ".txtar", ".yaml", ".yml", ""}, ext) {
		return nil, nil
	}
	data, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(file)))
	if err != nil || bytes.IndexByte(data, 0) >= 0 { // a binary file
		return nil, err
	}
	switch ext {
	case ".go":
		s.name(1, file)
		err = s.goFile(data)
	case ".py":
		s.name(1, file)
		s.python(string(data))
	case ".md":
		s.search(1, blank(markdownCode, string(data)))
	default:
		s.search(1, string(data))
	}
	return s.found, err
}

// goFile searches comments, literals and the names that the file declares.
func (s *source) goFile(data []byte) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	line := func(n ast.Node) int { return fset.Position(n.Pos()).Line }
	for _, group := range f.Comments {
		var text strings.Builder
		for _, c := range group.List {
			text.WriteString(strings.TrimPrefix(c.Text, "//") + "\n")
		}
		s.search(line(group), text.String())
	}
	names := func(nodes ...ast.Expr) {
		for _, n := range nodes {
			if id, ok := n.(*ast.Ident); ok {
				s.identifier(line(id), id.Name)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BinaryExpr:
			if text, ok := literal(n); ok {
				s.search(line(n), text)
				return false
			}
		case *ast.BasicLit:
			if text, ok := literal(n); ok {
				s.search(line(n), text)
			}
		case *ast.FuncDecl:
			names(n.Name)
		case *ast.TypeSpec:
			names(n.Name)
		case *ast.ValueSpec:
			for _, name := range n.Names {
				names(name)
			}
		case *ast.Field:
			for _, name := range n.Names {
				names(name)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				names(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				names(n.Key, n.Value)
			}
		}
		return true
	})
	return nil
}

// literal is the text of a string literal, or of literals joined by +.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		if !ok || e.Op != token.ADD {
			return "", false
		}
		right, ok := literal(e.Y)
		return left + right, ok
	}
	return "", false
}

var (
	pythonTexts  = regexp.MustCompile(`(?s)"""(.*?)"""|'''(.*?)'''|(?m:(?:^[ \t]*#.*\n)+)|#[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`)
	pythonNames  = regexp.MustCompile(`(?m)(?:def|class|as|for)\s+(\w+)|^\s*(?:self\.)?(\w+)(?::[^=\n]*)?\s*=[^=]`)
	markdownCode = regexp.MustCompile("(?ms)^```.*?^```$|\\]\\([^)]*\\)|<[^>]*>")
	codeSpan     = regexp.MustCompile("`[^`]*`|\\[\\S+\\]|\\w+://\\S+")
	testName     = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]`)
	wordEnd      = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	oneLetter    = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
	nameParts    = regexp.MustCompile(`[A-Z][a-z]+|[_0-9]+`)
)

// python searches comments, literals and the names that the file assigns.
func (s *source) python(text string) {
	for _, m := range pythonTexts.FindAllStringIndex(text, -1) {
		s.search(1+strings.Count(text[:m[0]], "\n"), text[m[0]:m[1]])
	}
	code := blank(pythonTexts, text)
	for _, m := range pythonNames.FindAllStringSubmatchIndex(code, -1) {
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				s.identifier(1+strings.Count(code[:m[i]], "\n"), code[m[i]:m[i+1]])
			}
		}
	}
}

// search looks for the rows of privateWords in a text whose first line has this number.
func (s *source) search(line int, text string) {
	var joined strings.Builder // the words in lower case, with one space between two
	var starts []int           // of each line
	for l := range strings.Lines(blank(codeSpan, text)) {
		starts = append(starts, joined.Len())
		for word := range strings.FieldsSeq(strings.TrimLeft(l, " \t#")) {
			joined.WriteString(strings.ToLower(word) + " ")
		}
	}
	text = joined.String()
	for _, w := range privateWords {
		if hasPrefix(s.path, w.except) || w.only != nil && !hasPrefix(s.path, w.only) {
			continue
		}
		for _, at := range matchesOf(w, text) {
			before := sort.SearchInts(starts, at[0]+1) - 1
			s.found = append(s.found, match{
				path: s.path, row: w.row, write: w.write, line: line + before,
				text: strings.ToValidUTF8(text[max(0, at[0]-40):min(len(text), at[1]+30)], ""),
			})
		}
	}
}

// matchesOf returns the places in a text in lower case where the row applies.
func matchesOf(w privateWord, text string) [][]int {
	if !slices.ContainsFunc(strings.Split(w.hint, "|"), func(part string) bool { return strings.Contains(text, part) }) {
		return nil
	}
	found := w.find.FindAllStringIndex(text, -1)
	if w.allowed == nil || found == nil {
		return found
	}
	allowed := w.allowed.FindAllStringIndex(text, -1)
	return slices.DeleteFunc(found, func(m []int) bool {
		return slices.ContainsFunc(allowed, func(a []int) bool { return a[0] < m[1] && m[0] < a[1] })
	})
}

// identifier checks the parts of a declared name. The name of a test is read as a sentence.
func (s *source) identifier(line int, name string) {
	if strings.HasPrefix(s.path, "examples/07-test-your-tool/") { // about a help desk
		return
	}
	if injectedFault := strings.Contains(strings.ToLower(name), "fault") && hasPrefix(s.path, injected); !injectedFault && isPrivateName(name) {
		s.found = append(s.found, match{path: s.path, row: "name", line: line, text: name, write: "see the word list"})
	}
	if testName.MatchString(name) {
		s.search(line, wordsOf(name))
	}
}

// wordsOf separates the words of a name by spaces.
func wordsOf(name string) string {
	return wordEnd.ReplaceAllString(oneLetter.ReplaceAllString(strings.ReplaceAll(name, "_", " "), "$1 $2"), "$1 $2")
}

func isPrivateName(name string) bool {
	return slices.ContainsFunc(strings.Fields(nameParts.ReplaceAllString(name, " $0 ")), func(part string) bool {
		return privateNames.MatchString(strings.ToLower(part))
	})
}

// name checks the name of the file.
func (s *source) name(line int, file string) {
	stem := path.Base(file)
	for _, end := range []string{path.Ext(file), "_test", "_internal", "_linux", "_other"} {
		stem = strings.TrimSuffix(stem, end)
	}
	if privateFiles.MatchString(stem) {
		s.found = append(s.found, match{path: s.path, row: "file", line: line, text: stem, write: "the noun that the file is about"})
	} else {
		s.identifier(line, stem)
	}
}

// blank replaces what the expression finds by underscores, so that the rest stays in its place.
func blank(e *regexp.Regexp, text string) string {
	return e.ReplaceAllStringFunc(text, func(found string) string {
		return strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return '_'
		}, found)
	})
}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
