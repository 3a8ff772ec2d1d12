//go:build unix && !linux

package launch

import (
	"os/exec"
	"syscall"
)

// bindToParent gives the child a process group of its own, so that Ctrl-C at a terminal reaches the launcher alone.
// Without Linux's parent-death signal only agents and gateways, which watch their standard input, follow a launcher
// that was killed; store servers must then be stopped by hand.
func bindToParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
