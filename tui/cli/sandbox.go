package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/restripe/restripe/policies"
)

// sandbox evaluates CUE in a process of this very program.
type sandbox struct {
	program string        // path
	name    string        // that it is called by
	time    time.Duration // for one text
	bytes   int64         // of memory
}

const evaluateName = "evaluate-cue"

// maxSandboxReply bounds what comes back, bytes.
const maxSandboxReply = 64 << 20

// evaluateCommand is that process.
func evaluateCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use: evaluateName + " BYTES", Hidden: true, Short: "Evaluate the CUE that a console hands on", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, arguments []string) error {
			bytes, err := strconv.ParseUint(arguments[0], 10, 63)
			if err != nil {
				return fmt.Errorf("how much memory it may take: %w", err)
			}
			if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes}); err != nil {
				return fmt.Errorf("limiting memory: %w", err)
			}
			return policies.ServeSandbox(s.In, s.Out)
		},
	}
}

// evaluate is a policies.Sandbox.
func (s *sandbox) evaluate(request []byte) ([]byte, error) {
	const advice = "make its lists and loops smaller, or give what it makes as YAML"
	ctx, cancel := context.WithTimeout(context.Background(), s.time)
	defer cancel()
	var complaint bytes.Buffer
	command := exec.CommandContext(ctx, s.program)
	command.Args = []string{s.name, evaluateName, strconv.FormatInt(s.bytes, 10)}
	command.Stdin, command.Stderr = bytes.NewReader(request), &complaint
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("there is no process to evaluate it in: %w", err)
	}
	reply, err := io.ReadAll(io.LimitReader(out, maxSandboxReply+1))
	if err != nil || len(reply) > maxSandboxReply {
		cancel() // it is not to go on
	}
	ended := command.Wait()
	switch {
	case len(reply) > maxSandboxReply:
		return nil, fmt.Errorf("becomes larger than %d MiB; %s", maxSandboxReply>>20, advice)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("takes more than %v to evaluate; %s", s.time, advice)
	case err == nil && ended == nil:
		return reply, nil
	}
	// A program that gets no more memory dies in one of several ways, and not all name it.
	if usage, is := command.ProcessState.SysUsage().(*syscall.Rusage); is && usage.Maxrss<<10 > s.bytes/4 {
		return nil, fmt.Errorf("takes more than %d MiB of memory to evaluate; %s", s.bytes>>20, advice)
	}
	reason, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
	return nil, fmt.Errorf("CUE cannot evaluate it: %w: %s", errors.Join(err, ended), reason)
}

// newSandbox returns one with what a text of a console may take of its machine. People wait for it while they type.
func newSandbox() (*sandbox, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program, which CUE is evaluated with: %w", err)
	}
	return &sandbox{program: program, name: os.Args[0], time: 5 * time.Second, bytes: 1 << 30}, nil
}
