//go:build ceph

package cli

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ceph/go-ceph/rados"

	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/store/ceph/cephtest"
)

// face is a person at a terminal: the commands know the gateway and the cluster of Ceph.
type face struct {
	t           *testing.T
	environment []string
}

// command makes a command of this program.
func (f *face) command(ctx context.Context, arguments ...string) *exec.Cmd {
	f.t.Helper()
	program, err := exec.LookPath("restripe") // testscript puts it there
	if err != nil {
		f.t.Fatal(err)
	}
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env = append(os.Environ(), f.environment...)
	return command
}

// does runs a command that has to end well and returns what it printed on both outputs.
func (f *face) does(arguments ...string) string {
	f.t.Helper()
	output, err := f.command(f.t.Context(), arguments...).CombinedOutput()
	if err != nil {
		f.t.Fatalf("restripe %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
	return string(output)
}

// fails runs a command that has to end with an error that speaks of want.
func (f *face) fails(want string, arguments ...string) {
	f.t.Helper()
	output, err := f.command(f.t.Context(), arguments...).CombinedOutput()
	if err == nil || !strings.Contains(string(output), want) {
		f.t.Errorf("restripe %s: %v; want a word about %q in\n%s", strings.Join(arguments, " "), err, want, output)
	}
}

// killed runs a command and ends it by SIGKILL as soon as enough reports that it is under way.
func (f *face) killed(enough func() bool, arguments ...string) {
	f.t.Helper()
	command := f.command(f.t.Context(), arguments...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		f.t.Fatal(err)
	}
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(30 * time.Second); !enough(); <-ticker.C {
		if time.Now().After(deadline) {
			f.t.Errorf("restripe %s does not get under way", strings.Join(arguments, " "))
			break
		}
	}
	if err := command.Process.Kill(); err != nil {
		f.t.Fatal(err)
	}
	if err := command.Wait(); command.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		f.t.Fatalf("restripe %s ended before it was killed: %v\n%s", strings.Join(arguments, " "), err, &output)
	}
}

// objectsOf reads all objects of a pool.
func objectsOf(t *testing.T, io *rados.IOContext) map[string]string {
	t.Helper()
	objects := map[string]string{}
	list, err := io.Iter()
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	buffer := make([]byte, 1<<20)
	for list.Next() {
		n, err := io.Read(list.Value(), buffer, 0)
		if err != nil {
			t.Fatal(err)
		}
		objects[list.Value()] = string(buffer[:n])
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return objects
}

const classFile = "classes:\n- name: default\n  ladder: rep(3),rs(2,2),rs(4,2)\n  prefixes: [\"\"]\n"

// TestAdoptionAndExportSurviveKills goes the whole way as a person would: pools for nodes, adoption that is killed and goes
// on, a look at a source that was written to meanwhile, trimming, and back into a plain pool, killed again.
func TestAdoptionAndExportSurviveKills(t *testing.T) {
	ceph := cephtest.Start(t, cephtest.Options{Hosts: 3})
	for _, pool := range []string{"archive", "back", "images"} {
		if _, err := ceph.Command("osd pool create", map[string]any{"pool": pool, "pg_num": 4}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ceph.Command("osd pool application enable", map[string]any{"pool": "images", "app": "rbd"}); err != nil {
		t.Fatal(err)
	}
	if err := ceph.AwaitServing(); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("restripe")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "classes.yaml"), []byte(classFile), 0o644); err != nil {
		t.Fatal(err)
	}
	cluster, err := launch.Start(t.Context(), launch.Options{
		Directory: filepath.Join(folder, "state"), Binary: program, Agents: 6, ClassFile: filepath.Join(folder, "classes.yaml"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	}()
	f := &face{t: t, environment: []string{gatewayVariable + "=" + cluster.Gateway(), "XDG_CACHE_HOME=" + filepath.Join(folder, "cache")}}
	at := func(arguments ...string) []string {
		return append(arguments, "--ceph-conf", ceph.Config(), "--keyring", ceph.Keyring())
	}

	if text := f.does(at("ceph", "init")...); !strings.Contains(text, "Nothing was changed") {
		t.Errorf("a dry run says\n%s", text)
	}
	f.does(at("ceph", "init", "--yes")...)
	if text := f.does(at("ceph", "check")...); !strings.Contains(text, "restripe.node3") || !strings.Contains(text, "Nothing was found") {
		t.Errorf("a check says\n%s", text)
	}
	f.does(at("ceph", "remove", "node3", "--yes")...)
	if text := f.does(at("doctor", "--ceph-user", "admin")...); !strings.Contains(text, "ceph host node3") {
		t.Errorf("the doctor says\n%s", text)
	}
	if text := f.does("doctor", "--ceph-conf", "none.conf"); !strings.Contains(text, "was not looked at") {
		t.Errorf("the doctor without Ceph says\n%s", text)
	}
	if _, err := ceph.Command("osd pool set", map[string]any{"pool": "restripe.node1", "var": "crush_rule", "val": "restripe.node2"}); err != nil {
		t.Fatal(err)
	}
	f.fails("takes node2, not node1 alone", at("doctor", "--ceph-user", "admin")...)
	f.fails("rbd", at("adopt", "--pool", "images", "--class", "default")...)
	f.fails("no class", at("adopt", "--pool", "archive", "--class", "nothing")...)
	f.fails("no pool", at("adopt", "--pool", "nothing", "--class", "default")...)

	io, err := openPool(t, ceph, "archive")
	if err != nil {
		t.Fatal(err)
	}
	want, contents := map[string]string{}, rand.NewChaCha8([32]byte{1})
	put := func(name string, size int) {
		data := make([]byte, size)
		if _, err := contents.Read(data); err != nil {
			t.Fatal(err)
		}
		want[name] = string(data)
		if err := io.WriteFull(name, data); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		put(fmt.Sprint("o", i), 100_000)
	}
	adoption := at("adopt", "--pool", "archive", "--class", "default", "--jobs", "2")
	stored := func(least int) func() bool {
		return func() bool { return strings.Count(f.does("ls", "-o", "name"), "\n") >= least }
	}
	f.killed(stored(5), append(adoption, "--throttle", "1MB/s")...)
	f.killed(stored(12), append(adoption, "--throttle", "1MB/s")...)
	put("o3", 50_000)
	put("o40", 10)
	f.does(adoption...)
	if text := f.does(append(adoption, "--trim", "-o", "json")...); !strings.Contains(text, `"skipped": 41`) || !strings.Contains(text, `"trimmed": 41`) {
		t.Errorf("trimming says\n%s", text)
	}
	if left := objectsOf(t, io); len(left) > 0 {
		t.Errorf("%d objects are left at the source", len(left))
	}

	back, err := openPool(t, ceph, "back")
	if err != nil {
		t.Fatal(err)
	}
	export := at("export", "--prefix", "archive/", "--key-prefix", "archive/", "--pool", "back", "--jobs", "2")
	f.killed(func() bool { return len(objectsOf(t, back)) >= 5 }, append(export, "--throttle", "1MB/s")...)
	f.does(export...)
	got := objectsOf(t, back)
	if len(got) != len(want) {
		t.Errorf("%d objects came back of %d", len(got), len(want))
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s differs: %d bytes, want %d", name, len(got[name]), len(want[name]))
		}
	}
}

// openPool opens a pool as the administrator.
func openPool(t *testing.T, cluster *cephtest.Cluster, name string) (*rados.IOContext, error) {
	t.Helper()
	admin, err := cluster.Connect()
	if err != nil {
		return nil, err
	}
	io, err := admin.OpenIOContext(name)
	if err != nil {
		admin.Shutdown()
		return nil, err
	}
	t.Cleanup(func() {
		io.Destroy()
		admin.Shutdown()
	})
	return io, nil
}
