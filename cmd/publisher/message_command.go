package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
)

// longestText is how much of a text is written into a command, in bytes.
const longestText = 1000

// messageInstead is the error for an event of publish that is a message of an agent or a user: the command that publishes it.
func messageInstead(body []byte) error {
	e, err := events.DecodeMessage(body)
	if err != nil {
		return fmt.Errorf("it is what an agent or a user has written, not a turn, and cannot be used: %w; publish such texts with publisher message", err)
	}
	command := []string{"publisher", "message", e.Chat}
	text, isText := e.Content.(string)
	if !isText {
		data, err := json.Marshal(e.Content)
		if err != nil {
			return errors.New("it is what an agent or a user has written, not a turn: publish its content with publisher message")
		}
		text = string(data)
	}
	where := ""
	if text == "" || len(text) > longestText || text[0] == '-' || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		where = ", with its content on standard input"
	} else {
		command = append(command, text)
	}
	agent, finish, turn := e.Agent, e.FinishReason, e.Turn
	if e.User {
		agent, finish = "", ""
	}
	if turn == e.ID || e.User {
		turn = ""
	}
	sequence, app := "", e.App
	if e.TurnSequence > 0 {
		sequence = strconv.FormatInt(e.TurnSequence, 10)
	}
	if app == events.DefaultApp {
		app = ""
	}
	for _, flag := range [][2]string{
		{"workflow", e.Workflow},
		{"agent", agent},
		{"user", e.UserID},
		{"id", e.ID},
		{"run", e.Run},
		{"turn", turn},
		{"finish-reason", finish},
		{"sequence", sequence},
		{"app", app},
	} {
		if flag[1] != "" {
			command = append(command, "--"+flag[0], flag[1])
		}
	}
	for i, word := range command {
		command[i] = cli.ShellWord(word)
	}
	if e.ContextVariables != nil {
		where += "; its context variables can be sent by a client only"
	}
	return fmt.Errorf("it is what an agent or a user has written, not a turn: publish it with %s%s", strings.Join(command, " "), where)
}
