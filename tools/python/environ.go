package python

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/oneturn/oneturn/internal/process"
)

const (
	maxDotEnv = 64 << 10 // bytes of a .env file
	minSecret = 6        // shorter values of a .env file are not redacted in the log
)

// environment builds the environment of a child: from the worker's own, what every tool needs
// and what the allow-list names; then the .env file of the folder, if one is given; then what the host needs. It
// returns the values of the .env file too, to keep them out of the log.
func environment(own, allow []string, folder string) (env, secrets []string, err error) {
	env = process.Environment(own, allow)
	var vars [][2]string
	if folder != "" {
		if vars, err = readDotEnv(filepath.Join(folder, ".env")); err != nil {
			return nil, nil, err
		}
	}
	for _, v := range vars {
		env = append(env, v[0]+"="+v[1])
		if len(v[1]) >= minSecret {
			secrets = append(secrets, v[1])
		}
	}
	return append(env, "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUTF8=1",
		"PYTHONIOENCODING=utf-8:backslashreplace"), secrets, nil
}

// readDotEnv reads KEY=VALUE lines in order; a missing file has none.
func readDotEnv(path string) ([][2]string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a named pipe would wait for a writer
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the workflow's .env: %w", err)
	}
	defer file.Close()
	switch info, err := file.Stat(); {
	case err != nil || !info.Mode().IsRegular():
		return nil, fmt.Errorf("read %s: it must be a regular file", path)
	case info.Size() > maxDotEnv:
		return nil, fmt.Errorf("read %s: it has %d bytes, over the limit of %d", path, info.Size(), maxDotEnv)
	}
	var vars [][2]string
	lines := bufio.NewScanner(io.LimitReader(file, maxDotEnv))
	for lines.Scan() {
		if key, value, ok := dotEnvLine(lines.Text()); ok {
			vars = append(vars, [2]string{key, value})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the workflow's .env: %w", err)
	}
	return vars, nil
}

// dotEnvLine parses one line: an optional export, a name, a value that may be quoted, a
// comment after a blank and #. In double quotes \n, \" and \\ are escapes.
func dotEnvLine(line string) (key, value string, ok bool) {
	line = strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")), "export ")
	key, value, ok = strings.Cut(line, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if !ok || key == "" || strings.HasPrefix(key, "#") || strings.ContainsAny(key, " \t\x00") || strings.Contains(value, "\x00") {
		return "", "", false
	}
	switch {
	case strings.HasPrefix(value, `'`):
		value, _, _ = strings.Cut(value[1:], `'`)
	case strings.HasPrefix(value, `"`):
		value = unquote(value[1:])
	default:
		if i := strings.Index(value, " #"); i >= 0 {
			value = strings.TrimSpace(value[:i])
		}
	}
	return key, value, true
}

func unquote(value string) string {
	var b strings.Builder
	for i := 0; i < len(value) && value[i] != '"'; i++ {
		if value[i] != '\\' || i+1 == len(value) {
			b.WriteByte(value[i])
			continue
		}
		i++
		switch value[i] {
		case 'n':
			b.WriteByte('\n')
		case '"', '\\':
			b.WriteByte(value[i])
		default:
			b.WriteString(value[i-1 : i+1])
		}
	}
	return b.String()
}
