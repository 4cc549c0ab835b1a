package python_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// A function in workflows/Hello/tools/greet.py becomes a tool.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "workflows")
	source := "async def greet(name): return {'message': 'Hello ' + name}\n"
	if err := os.MkdirAll(filepath.Join(root, "Hello", "tools"), 0o750); err != nil {
		fmt.Println(err)
		return
	}
	if err := os.WriteFile(filepath.Join(root, "Hello", "tools", "greet.py"), []byte(source), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	pool := python.NewPool(python.Options{Root: root})
	defer pool.Close(context.Background())
	greet := pool.Tool("Hello", "greet.py", "greet")
	result, err := greet.Invoke(context.Background(), &tools.Call{Args: map[string]any{"name": "Ada"}})
	fmt.Println(string(result.Value), err)
	// Output: {"message":"Hello Ada"} <nil>
}
