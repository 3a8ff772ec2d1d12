package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/client"
)

const (
	hugeBytes  = 3 << 29 // 1.5 GiB
	hugeMemory = 256     // MiB the gateway may use at its peak
)

// TestHugeObject streams an object of 1.5 GiB in, of unknown length, and out again: the gateway must do it in bounded
// memory.
func TestHugeObject(t *testing.T) {
	if testing.Short() {
		t.Skip("1.5 GiB in and out take a while; -short leaves them out")
	}
	classes := "classes: [{name: default, ladder: 'rep(2),rs(2,1),rs(4,1)', default: 'rs(4,1)', prefixes: ['']}]"
	g := gatewayOver(t, classes, agentsOver(t, directories(t, 5)...)...)
	c := clientOf(t, g.address)
	sent := sha256.New()
	began := time.Now()
	object, err := c.Put(t.Context(), "huge", &generator{random: rand.NewChaCha8([32]byte{1}), left: hugeBytes, sum: sent}, client.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored := time.Since(began)
	if object.Size != hugeBytes {
		t.Errorf("the object has %d bytes, %d were sent", object.Size, int64(hugeBytes))
	}
	afterPut := peakMemory(t, g.command.Process.Pid)
	began = time.Now()
	content, err := c.Get(t.Context(), "huge", client.Range{})
	if err != nil {
		t.Fatal(err)
	}
	came := sha256.New()
	n, err := io.Copy(came, content)
	if err != nil || n != hugeBytes || content.Length != hugeBytes {
		t.Errorf("%d of %d bytes came back: %v", n, content.Length, err)
	}
	if err := content.Close(); err != nil {
		t.Error(err)
	}
	if one, other := hex.EncodeToString(sent.Sum(nil)), hex.EncodeToString(came.Sum(nil)); one != other {
		t.Errorf("SHA-256 %s went in and %s came out", one, other)
	}
	afterGet := peakMemory(t, g.command.Process.Pid)
	t.Logf("1.5 GiB: stored in %v, read in %v; the gateway's peak memory was %d MiB after the put and %d MiB after the get",
		stored.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), afterPut, afterGet)
	if afterGet > hugeMemory {
		t.Errorf("the gateway used %d MiB at its peak, want at most %d", afterGet, hugeMemory)
	}
	// A range far inside needs its own bytes only.
	const at, length = hugeBytes / 3 * 2, 4096
	span, err := c.Get(t.Context(), "huge", client.Range{Offset: at, Length: length})
	if err != nil {
		t.Fatal(err)
	}
	part, err := io.ReadAll(span)
	if err != nil {
		t.Error(err)
	}
	if err := span.Close(); err != nil {
		t.Error(err)
	}
	if len(part) != length {
		t.Errorf("a range of %d bytes has %d", length, len(part))
	}
}

// generator is a stream of random bytes that sums what it gave.
type generator struct {
	random *rand.ChaCha8
	left   int64
	sum    hash.Hash
}

// Read gives the next bytes.
func (g *generator) Read(p []byte) (int, error) {
	if g.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), g.left)]
	n, err := g.random.Read(p)
	g.left -= int64(n)
	g.sum.Write(p[:n])
	return n, err
}

// peakMemory returns the most memory a process has had resident, in MiB (VmHWM of proc(5)).
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("the memory of a process cannot be told: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if amount, is := strings.CutPrefix(line, "VmHWM:"); is {
			kibibytes, err := strconv.Atoi(strings.Fields(amount)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kibibytes / 1024
		}
	}
	t.Fatal("/proc tells no VmHWM")
	return 0
}
