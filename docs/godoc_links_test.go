package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goPackage is a package of the module, or the test package in its folder: its files, and the names that it declares, of
// members with their type (Client.Do). Names of several packages are one set if packages have the same name.
type goPackage struct {
	files []*ast.File
	names map[string]bool
}

// docLink is a link of a comment: a name of its package, or one that a package or a type qualifies.
var docLink = regexp.MustCompile(`(?:^|[\s(])\[\*?((?:[a-z]\w*\.)?[A-Z]\w+(?:\.\w+)?)\](?:[\s,.:;)?!'’]|$)`)

// TestLinksOfCommentsResolve checks the links of comments to names of this module: gofmt and vet accept dead ones, and
// godoc prints them as plain text.
func TestLinksOfCommentsResolve(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	folders, byName := parseModule(t, fset)
	for _, p := range folders {
		for _, file := range p.files {
			for _, group := range file.Comments {
				for _, link := range deadLinks(group.Text(), p, byName) {
					t.Errorf("%s: [%s]: there is no such name", fset.Position(group.Pos()), link)
				}
			}
		}
	}
}

// deadLinks returns the links in a comment of a package that lead to no name.
func deadLinks(text string, p *goPackage, byName map[string]*goPackage) (dead []string) {
	for _, m := range docLink.FindAllStringSubmatch(text, -1) {
		if strings.Contains(text, "["+m[1]+"]: ") { // it names its target itself
			continue
		}
		known, name := p, m[1]
		if before, after, ok := strings.Cut(name, "."); ok && before == strings.ToLower(before) {
			known, name = byName[before], after
		}
		if known != nil && !known.has(name) {
			dead = append(dead, m[1])
		}
	}
	return dead
}

// parseModule returns the packages of the module by folder and name, and of all packages with one name together.
func parseModule(t *testing.T, fset *token.FileSet) (folders, byName map[string]*goPackage) {
	t.Helper()
	folders, byName = map[string]*goPackage{}, map[string]*goPackage{}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && slices.Contains([]string{".git", ".ci", "bin", "testdata"}, d.Name()) {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, set := range []struct {
			of map[string]*goPackage
			in string
		}{{folders, filepath.Dir(path) + " " + file.Name.Name}, {byName, file.Name.Name}} {
			p := set.of[set.in]
			if p == nil {
				p = &goPackage{names: map[string]bool{}}
				set.of[set.in] = p
			}
			p.files = append(p.files, file)
			p.declare(file)
		}
		return nil
	}))
	return folders, byName
}

// declare adds the names that a file declares.
func (p *goPackage) declare(file *ast.File) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			p.names[receiver(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						p.names[name.Name] = true
					}
				case *ast.TypeSpec:
					p.names[spec.Name.Name] = true
					p.members(spec)
				}
			}
		}
	}
}

// members adds the fields or methods of a type; one that embeds another may have any.
func (p *goPackage) members(spec *ast.TypeSpec) {
	ast.Inspect(spec.Type, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok {
			return true
		}
		if len(field.Names) == 0 {
			p.names[spec.Name.Name+".*"] = true
		}
		for _, name := range field.Names {
			p.names[spec.Name.Name+"."+name.Name] = true
		}
		return true
	})
	if spec.Assign.IsValid() {
		p.names[spec.Name.Name+".*"] = true
	}
}

func (p *goPackage) has(name string) bool {
	typeName, _, _ := strings.Cut(name, ".")
	return p.names[name] || p.names[typeName+".*"] && typeName != name
}

// receiver is the type of a method with a dot, "" of a function.
func receiver(d *ast.FuncDecl) (name string) {
	if d.Recv == nil {
		return ""
	}
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name + "."
		}
		return true
	})
	return name
}
