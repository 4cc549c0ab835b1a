package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// machine is what the figures depend on besides the code. Unknown parts are "".
type machine struct {
	CPU       string `json:"cpu"`
	Cores     int    `json:"cores"`
	Memory    string `json:"memory"`
	System    string `json:"system"`
	StoreType string `json:"store_file_system"`

	Go         string `json:"go"`
	NATSServer string `json:"nats_server"`
	NATSClient string `json:"nats_client"`
	Oneturn    string `json:"oneturn"`
}

func readMachine(ctx context.Context, store string) machine {
	m := machine{
		CPU: afterColon("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Memory: afterColon("/proc/meminfo", "MemTotal"),
		System: runtime.GOOS + "/" + runtime.GOARCH + " " + firstLine("/proc/sys/kernel/osrelease"), StoreType: fileSystem(store),
		Go: runtime.Version(), Oneturn: "of unknown revision",
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return m
	}
	for _, d := range info.Deps {
		switch d.Path {
		case "github.com/nats-io/nats-server/v2":
			m.NATSServer = d.Version
		case "github.com/nats-io/nats.go":
			m.NATSClient = d.Version
		}
	}
	m.Oneturn = info.Main.Version
	if m.Oneturn == "(devel)" || m.Oneturn == "" { // as "go run" leaves it
		m.Oneturn = or(revision(ctx), "of unknown revision")
	}
	return m
}

// revision is the commit of the working directory, "" outside a clone.
func revision(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--tags").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s of memory, %s, store on %s", or(m.CPU, runtime.GOARCH), m.Cores, or(m.Memory, "unknown"),
		strings.TrimSpace(m.System), or(m.StoreType, "an unknown file system"))
}

func (m machine) versions() string {
	return fmt.Sprintf("oneturn %s, nats-server %s, nats.go %s, %s", m.Oneturn, m.NATSServer, m.NATSClient, m.Go)
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func afterColon(file, key string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func firstLine(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}

// load is the load average of the last minute, for a reader who wonders about neighbours.
func load() string {
	one, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	return or(one, "unknown")
}

// fileSystem is the type of the file system that dir is on: on tmpfs "file storage" is memory.
func fileSystem(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return ""
	}
	best, kind := "", ""
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || len(fields[1]) < len(best) {
			continue
		}
		if at := fields[1]; at == "/" || dir == at || strings.HasPrefix(dir, at+"/") {
			best, kind = at, fields[2]
		}
	}
	return kind
}
