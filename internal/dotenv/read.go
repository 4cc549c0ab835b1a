package dotenv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"
)

// MaxSize is how many bytes a file may have.
const MaxSize = 64 << 10

// Read reads a file that is named relative to a folder, which no symbolic link may lead out of. One
// that does not exist sets nothing. The error names the path: of a file that cannot be read, is not a
// regular one, is over [MaxSize] or is not text.
func Read(folder, name string) (*File, error) {
	path := filepath.Join(folder, name)
	in, err := open(folder, name)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer in.Close()
	switch info, err := in.Stat(); {
	case err != nil || !info.Mode().IsRegular():
		return nil, fmt.Errorf("read %s: it must be a regular file", path)
	case info.Size() > MaxSize:
		return nil, fmt.Errorf("read %s: it has %d bytes, over the limit of %d", path, info.Size(), MaxSize)
	}
	data, err := io.ReadAll(io.LimitReader(in, MaxSize))
	if err != nil {
		return nil, fmt.Errorf("read the workflow's .env: %w", err)
	}
	f, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return f, nil
}

// open does not wait where the file is a named pipe without a writer.
func open(folder, name string) (*os.File, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the path
	}
	defer root.Close()
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if info, none := root.Lstat(name); err != nil && none == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("its symbolic link must be relative and stay inside %s: %w", folder, err)
	}
	return file, err //nolint:wrapcheck // the caller names the path
}

// Parse reads the text of a file. The error names the line of a byte that no environment
// variable can hold.
func Parse(data []byte) (*File, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for i, line := range bytes.Split(data, []byte("\n")) {
		switch {
		case !utf8.Valid(line):
			return nil, fmt.Errorf("line %d is not UTF-8: save the file as UTF-8", i+1)
		case bytes.IndexByte(line, 0) >= 0:
			return nil, fmt.Errorf("line %d has a zero byte: save the file as UTF-8, without it", i+1)
		}
	}
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
	p := parser{rest: text, line: 1}
	for p.rest != "" {
		p.statement()
	}
	return &p.file, nil
}
