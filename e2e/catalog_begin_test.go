//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// postgresSockets is where Debian's clients of PostgreSQL look for a server of this machine.
const postgresSockets = "/var/run/postgresql"

// TestCatalogBegins types what docs/catalog.md says of two gateways over three members of etcd, and over PostgreSQL, as it stands there,
// in namespaces where nobody else has the ports. Either gateway reads what the other stored, also when a member of etcd was killed.
func TestCatalogBegins(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts clusters; -short leaves it out")
	}
	for engine, begin := range map[string]func(t *testing.T, base string){"etcd": beginOverEtcd, "postgres": beginOverPostgres} {
		t.Run(engine, func(t *testing.T) {
			if base := os.Getenv(insideVariable); base != "" {
				if err := furnish(t.Context()); err != nil {
					t.Skipf("%s%v", notTested, err)
				}
				begin(t, base)
				return
			}
			if engine == "etcd" {
				t.Setenv(etcdVariable, etcdProgram(t))
			} else {
				t.Setenv(postgresVariable, postgresPrograms(t))
			}
			inside(t)
		})
	}
}

// typed returns the blocks of shell below a heading of docs/catalog.md.
func typed(t *testing.T, heading string) (blocks []string) {
	t.Helper()
	page, err := os.ReadFile("../docs/catalog.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n### "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n#")
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, block[1])
	}
	if len(blocks) == 0 {
		t.Fatalf("docs/catalog.md has nothing to type below %q", heading)
	}
	return blocks
}

// shell is what a person at a terminal has: a home, a folder, and the programs.
type shell struct{ home, path string }

func newShell(t *testing.T, base string, programs ...string) *shell {
	t.Helper()
	s := &shell{home: filepath.Join(base, "home"), path: base + ":" + os.Getenv("PATH")}
	if err := os.Mkdir(s.home, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		if err := os.Symlink(program, filepath.Join(base, filepath.Base(program))); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *shell) command(t *testing.T, text string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-eu", "-c", text)
	command.Dir = s.home
	command.Env = []string{"HOME=" + s.home, "PATH=" + s.path}
	return command
}

// begin types what runs until the test ends, and waits until the gateway at an address stores something.
func (s *shell) begin(t *testing.T, text, gateway string) {
	t.Helper()
	background(t, s.command(t, text), os.Kill, func() bool {
		return listens(gateway) && s.command(t, "echo first > first; restripe --gateway "+gateway+" put first ready/"+gateway).Run() == nil
	})
}

// exchange has each gateway read what the other stores.
func (s *shell) exchange(t *testing.T, name string) {
	t.Helper()
	for from, to := range map[string]string{"127.0.0.1:7480": "127.0.0.1:7490", "127.0.0.1:7490": "127.0.0.1:7480"} {
		until(t, "one gateway reads what the other stores", func() bool {
			text := fmt.Sprintf("echo %[1]s > %[1]s; restripe --gateway %[2]s put %[1]s %[2]s/%[1]s; restripe --gateway %[3]s get %[2]s/%[1]s -",
				name, from, to)
			said, err := s.command(t, text).CombinedOutput()
			if err != nil {
				t.Logf("%s: %v: %s", text, err, said)
			}
			return err == nil && strings.HasSuffix(string(said), name+"\n")
		})
	}
}

func beginOverEtcd(t *testing.T, base string) {
	s := newShell(t, base, os.Getenv(etcdVariable))
	blocks := typed(t, "Two gateways over three members of etcd")
	s.begin(t, blocks[0], "127.0.0.1:7480")
	s.begin(t, blocks[1], "127.0.0.1:7490")
	s.exchange(t, "first")
	said, err := s.command(t, `for process in /proc/[0-9]*; do
	if tr '\0' ' ' 2>/dev/null <$process/cmdline | grep -q '^etcd --name m1 '; then kill -9 "${process#/proc/}" && echo killed; fi
done`).CombinedOutput()
	if err != nil || string(said) != "killed\n" {
		t.Fatalf("killing a member: %v: %s", err, said)
	}
	s.exchange(t, "second")
}

func beginOverPostgres(t *testing.T, base string) {
	owner, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(owner.Uid)
	if err != nil {
		t.Fatal(err)
	}
	group, err := strconv.Atoi(owner.Gid)
	if err != nil {
		t.Fatal(err)
	}
	// A server as Debian has it: people of this machine by who they are, others by password.
	if err := os.MkdirAll(postgresSockets, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", postgresSockets, "tmpfs", 0, fmt.Sprintf("mode=0755,uid=%d,gid=%d", id, group)); err != nil {
		t.Fatal(err)
	}
	programs, data := os.Getenv(postgresVariable), filepath.Join(postgresSockets, "data")
	as := func(program string, arguments ...string) *exec.Cmd {
		command := exec.CommandContext(t.Context(), filepath.Join(programs, program), arguments...)
		command.Dir = postgresSockets
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(group)}}
		return command
	}
	made, err := as("initdb", "--pgdata="+data, "--auth-local=peer", "--auth-host=scram-sha-256", "--encoding=UTF8", "--no-sync").CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v: %s", err, made)
	}
	background(t, as("postgres", "-D", data, "-c", "unix_socket_directories="+postgresSockets), os.Kill,
		func() bool { return listens("127.0.0.1:5432") })
	s := newShell(t, base)
	s.begin(t, typed(t, "Two gateways over PostgreSQL")[0], "127.0.0.1:7480")
	second := typed(t, "Two gateways over three members of etcd")[1]
	s.begin(t, regexp.MustCompile(`--catalog \S+`).ReplaceAllString(second, "--catalog @catalog.addr"), "127.0.0.1:7490")
	s.exchange(t, "first")
}
