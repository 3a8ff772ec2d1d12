package launch

import (
	"os/exec"
	"syscall"
)

// bindToParent has the kernel kill the child when the thread that starts it dies. The child gets a process group of its
// own, so that Ctrl-C at a terminal reaches the launcher alone, which then stops its children in order.
func bindToParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
