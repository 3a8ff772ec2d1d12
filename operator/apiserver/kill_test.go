package apiserver_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A server that is killed while it writes has everything that it acknowledged when it is started again.
func TestKillKeepsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	var acknowledged []string
	for round := range 3 {
		server := startProcess(t, directory)
		server.ready(t)
		client := policies(t, configOf(t, directory))
		list, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		there := map[string]bool{}
		for _, policy := range list.Items {
			there[policy.GetName()] = true
		}
		for _, name := range acknowledged {
			if !there[name] {
				t.Errorf("round %d: %s is lost", round, name)
			}
		}
		killed := time.AfterFunc(100*time.Millisecond, func() { server.Process.Kill() })
		for i := 0; ; i++ {
			name := fmt.Sprintf("p-%d-%d", round, i)
			if createPolicy(t.Context(), client, name) != nil {
				break
			}
			acknowledged = append(acknowledged, name)
		}
		killed.Stop()
		server.kill()
	}
	if len(acknowledged) < 3 {
		t.Errorf("only %d policies were made", len(acknowledged))
	}
	t.Logf("%d policies were acknowledged and kept", len(acknowledged))
}

// A server that is killed while it starts, for the first time or again, starts the next time.
func TestKillWhileStarting(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, stage := range []string{"first", "again"} {
		t.Run(stage, func(t *testing.T) {
			directory := t.TempDir()
			if stage == "again" {
				server := startProcess(t, directory)
				server.ready(t)
				if err := createPolicy(t.Context(), policies(t, configOf(t, directory)), "media"); err != nil {
					t.Fatal(err)
				}
				server.kill()
			}
			for range 8 {
				server := startProcess(t, directory)
				<-time.After(time.Duration(random.Int64N(int64(time.Second))))
				server.kill()
			}
			server := startProcess(t, directory)
			server.ready(t)
			client := policies(t, configOf(t, directory))
			if stage == "again" {
				if _, err := client.Get(t.Context(), "media", metav1.GetOptions{}); err != nil {
					t.Error(err)
				}
			}
			if err := createPolicy(t.Context(), client, "last"); err != nil {
				t.Error(err)
			}
		})
	}
}

// What etcd left in a start that was broken off is thrown away as long as no server was ever ready on it; after that it
// is for a person to decide.
func TestTornEtcdIsReplaced(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	member := filepath.Join(directory, "etcd", "member")
	tear := func() {
		if err := os.RemoveAll(member); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(member, "wal"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(member, "wal", "0000000000000000-0000000000000000.wal"), []byte("torn"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tear()
	server := startProcess(t, directory)
	server.ready(t)
	server.kill()
	tear()
	broken := startProcess(t, directory)
	if line, err := broken.said.ReadString('\n'); err == nil {
		t.Fatalf("a broken state is started on: %s", line)
	}
	broken.Wait()
	if said := broken.errors.String(); !strings.Contains(said, "cannot read its state in "+directory) {
		t.Errorf("of a broken state it says: %s", said)
	}
}

// A server does not say anything on a good day.
func TestQuiet(t *testing.T) {
	directory := t.TempDir()
	for range 2 {
		server := startProcess(t, directory)
		server.ready(t)
		if err := createPolicy(t.Context(), policies(t, configOf(t, directory)), fmt.Sprintf("p-%d", time.Now().UnixNano())); err != nil {
			t.Fatal(err)
		}
		if err := server.lifeline.Close(); err != nil {
			t.Fatal(err)
		}
		if err := server.Wait(); err != nil {
			t.Errorf("the server ends with %v", err)
		}
		if said := server.errors.String(); said != "" {
			t.Errorf("the server says:\n%s", said)
		}
	}
}
