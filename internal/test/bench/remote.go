package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// remote is a role in a separate process.
type remote struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	send *json.Encoder
	recv *json.Decoder
}

// childArg makes this program one role (see child).
const childArg = "child"

// spawn starts a role in a separate process: this program once more.
func spawn(ctx context.Context, s spec) (role, reply, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, reply{}, fmt.Errorf("find this program: %w", err)
	}
	c := &remote{name: s.Role, cmd: exec.CommandContext(ctx, exe, childArg)}
	c.cmd.Stderr = os.Stderr
	c.cmd.WaitDelay = 10 * time.Second
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, reply{}, fmt.Errorf("start the child: %w", err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, reply{}, fmt.Errorf("start the child: %w", err)
	}
	c.send, c.recv = json.NewEncoder(c.in), json.NewDecoder(out)
	if err := c.cmd.Start(); err != nil {
		return nil, reply{}, fmt.Errorf("start %s: %w", s.Role, err)
	}
	hello, err := c.exchange(s)
	if err != nil {
		return nil, reply{}, errors.Join(err, c.close())
	}
	return c, hello, nil
}

func (c *remote) exchange(message any) (reply, error) {
	var answer reply
	if err := c.send.Encode(message); err != nil {
		return reply{}, fmt.Errorf("ask the %s: %w", c.name, err)
	}
	if err := c.recv.Decode(&answer); err != nil {
		return reply{}, fmt.Errorf("answer of the %s: %w", c.name, err)
	}
	if answer.Error != "" {
		return reply{}, fmt.Errorf("%s: %s", c.name, answer.Error)
	}
	return answer, nil
}

// do implements role. ctx ends the process, not the request: see spawn.
func (c *remote) do(_ context.Context, r request) (reply, error) { return c.exchange(r) }

// kill ends the process as a crash does.
func (c *remote) kill() error {
	if err := c.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill the %s: %w", c.name, err)
	}
	_ = c.cmd.Wait() // reports that it was killed
	return nil
}

func (c *remote) close() error {
	if err := errors.Join(c.in.Close(), c.cmd.Wait()); err != nil {
		return fmt.Errorf("end of the %s: %w", c.name, err)
	}
	return nil
}
