package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// citedFile matches the name of a file of this repository, or a pattern of such names.
var citedFile = regexp.MustCompile(`[\w*./-]*[\w*]\.(?:go|py|md)\b`)

// notInTree are names of files that are not in this repository: a library, files of workflows in examples, placeholders, and a
// file that an overlay adds.
var notInTree = regexp.MustCompile(`^(nats\.go|//pkg\.go|(.*/)?greet\.py|t\.py|order\.py|\*\.py|NAME(_\*)?\.go|idempotency/mutants\.go)$`)

// nameInFile is a name of code that a comment places in a file.
var nameInFile = regexp.MustCompile(`\b([A-Za-z]\w*[a-z][A-Z]\w*) in ((?:\w+/)+\w+\.go)\b`)

// TestFilesThatCommentsCiteExist checks names of files in the comments of Go and Python files: each is in the folder of the
// comment, or its path begins there or at the root. A name of code that a comment places in a file is in that file.
func TestFilesThatCommentsCiteExist(t *testing.T) {
	t.Parallel()
	cited := 0
	for file, comments := range commentsOfTheTree(t) {
		for _, name := range citedFile.FindAllString(comments, -1) {
			if notInTree.MatchString(name) {
				continue
			}
			cited++
			if len(filesNamed(t, path.Dir(file), name)) == 0 {
				t.Errorf("%s cites %s, which does not exist", file, name)
			}
		}
		for _, m := range nameInFile.FindAllStringSubmatch(comments, -1) {
			require.Regexp(t, `\b`+m[1]+`\b`, text(t, "../"+m[2]), "%s cites %s in %s", file, m[1], m[2])
		}
	}
	require.Greater(t, cited, 500)
}

// TestListsOfFilesAreComplete reads the comments of the files with a package comment: if they name a file of the package,
// they name all, without tests and their own file. Packages of five files and more have such a list.
func TestListsOfFilesAreComplete(t *testing.T) {
	t.Parallel()
	files := map[string][]string{}         // of each folder
	listed := map[string]map[string]bool{} // of each folder with a list
	for file, comments := range commentsOfTheTree(t) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		dir := path.Dir(file)
		files[dir] = append(files[dir], file)
		if !hasPackageComment(t, file) {
			continue
		}
		for _, name := range citedFile.FindAllString(comments, -1) {
			for _, other := range filesNamed(t, dir, name) {
				if path.Dir(other) != dir || other == file || strings.HasSuffix(other, "_test.go") {
					continue
				}
				if listed[dir] == nil {
					listed[dir] = map[string]bool{file: true}
				}
				listed[dir][other] = true
			}
		}
	}
	for dir, names := range listed {
		for _, file := range files[dir] {
			if !names[file] {
				t.Errorf("%s is not in the list of its package", file)
			}
		}
	}
	for dir, names := range files {
		if len(names) >= 5 && listed[dir] == nil {
			t.Errorf("%s has %d files, which its package comment does not list", dir, len(names))
		}
	}
}

// filesNamed are the files of a name or a pattern, from the root: in the folder, else with the path from there or from the root.
func filesNamed(t *testing.T, dir, name string) []string {
	t.Helper()
	for _, pattern := range []string{path.Join(dir, name), name} {
		found, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pattern)))
		require.NoError(t, err)
		for i, file := range found {
			found[i] = strings.TrimPrefix(filepath.ToSlash(file), "../")
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// hasPackageComment reports whether a file has the comment of its package.
func hasPackageComment(t *testing.T, file string) bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", file), nil, parser.ParseComments|parser.PackageClauseOnly)
	require.NoError(t, err)
	return f.Doc != nil
}

// commentsOfTheTree are the comments of each Go and Python file, by its path from the root.
func commentsOfTheTree(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		file := strings.TrimPrefix(filepath.ToSlash(name), "../")
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin"):
			return fs.SkipDir
		case strings.HasSuffix(file, ".go"):
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			found[file] = commentsOf(f)
		case strings.HasSuffix(file, ".py"):
			found[file] = strings.Join(pythonComment.FindAllString(text(t, name), -1), "\n")
		}
		return nil
	}))
	return found
}

var pythonComment = regexp.MustCompile(`(?s)""".*?"""|#[^\n]*`)

func commentsOf(f *ast.File) string {
	var b strings.Builder
	for _, group := range f.Comments {
		for _, c := range group.List {
			b.WriteString(c.Text + "\n")
		}
	}
	return b.String()
}
