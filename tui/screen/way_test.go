package screen_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/tui/screen"
)

// cooling is a policy under which all that is not used goes to rs(6,2), when a person approves.
const cooling = `apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: cooling}
spec:
  backendRef: real
  selector: {prefixes: [cool/]}
  ladder: [rep(3), 'rs(6,2)']
  packing: {groupBytes: 64Ki, below: 1Ki}
  approval: {mode: Manual}
  temperature: {halfLife: 1s, dwell: 1s, rules: [{scheme: 'rs(6,2)', below: 1}]}
  budget: {bytesPerSecond: 256Ki, foregroundLatency: 10s}
`

// pen is an editor that changes a text in one way.
type pen struct {
	path string
	with *strings.Replacer
}

func (p pen) Run() error {
	text, err := os.ReadFile(p.path)
	if err != nil {
		return err
	}
	return os.WriteFile(p.path, []byte(p.with.Replace(string(text))), 0o600)
}
func (pen) SetStdin(io.Reader)  {}
func (pen) SetStdout(io.Writer) {}
func (pen) SetStderr(io.Writer) {}

// TestTheWholeWay does a day's work by keys alone, over the real operator, gateway and agents: look around, find a
// transition that waits, see what it would do, approve it, pause, throttle and resume it, cancel it, edit the policy with
// a mistake and without, hold it, drain a node, and find it all in the audit log.
func TestTheWholeWay(t *testing.T) {
	w := newWorld(t, access.Local())
	w.declare(cooling)
	edits := []*strings.Replacer{strings.NewReplacer("rs(6,2)", "rs(6,"), strings.NewReplacer("rs(6,", "rs(6,2)", "256Ki", "512Ki")}
	p := w.sit("", func(o *screen.Options) {
		o.Edit = func(path string) (tea.ExecCommand, error) {
			one := pen{path, edits[0]}
			edits = edits[1:]
			return one, nil
		}
	})
	p.play(`
wait 15 of 15 up
keys :policies<enter>
wait cooling
`)
	w.cool()
	p.play(`
keys :ov<enter>
wait All 20 objects can lose 2 nodes.
wait to approve
wait GROUP rep 3
keys :tr cooling<enter>
wait to approve
`)
	w.planned(40) // each object has two groups; a plan that was approved of fewer would need approval anew
	p.play(`
keys p
wait step 0 of
wait encoding would send
keys ]
wait Nothing crossed the network.
keys <esc>
keys a
wait Approve transition cooling-
keys n
wait to approve
keys a
wait y approves
keys y
wait is approved
keys P
wait paused
keys t
wait Most bytes a second
keys nonsense<enter>
wait want bytes a second such as 20MiB/s
keys t1MiB/s<enter>
wait 1.0 MiB
keys <enter>
wait 1.0 MiB/s for this transition
wait PROGRESS
keys <esc>
keys c
wait Cancel transition cooling-
keys something else<enter>
wait nothing was done
keys P
gone paused
keys <esc>
keys :nodes<enter>
wait n15
keys /n3<enter>
wait (1 of 15) /n3
keys D
wait Drain node n3 of real?
keys n3<enter>
wait draining
keys D
wait up
gone draining
keys :policies<enter>
wait cooling
keys e
wait cannot be applied
wait cooling.yaml:
keys e
wait take it over with force
wait belong to whoever applied them first
keys F
wait Nothing is applied yet
wait 512Ki
keys A
wait Apply these changes to cooling
keys y
wait configured
keys P
wait held
keys nrs(6,2) 7d the audit<enter>
wait y pins it
keys n
gone y pins it
keys n6+2 7d the audit<enter>
wait Pin policy cooling to 6+2 until
keys y
wait is pinned to rs(6,2) until
wait [6+2]
keys u
wait Unpin policy cooling
keys y
wait is not pinned any more
gone [6+2]
keys y
wait kind: RedundancyPolicy
wait as YAML
keys <esc>
keys :objects cool/1<enter>
wait cool/19
keys <enter>
wait array
wait n1
keys :he<enter>
wait cooling
keys /cooling<enter>
keys <enter>
wait GROUPS BY ACCESSES A DAY
keys :audit<enter>
wait ApproveTransition
wait PauseTransition
wait ThrottleTransition
wait DrainNode
wait ApplyPolicy
wait HoldPolicy
wait PinPolicy
wait UnpinPolicy
keys ?G
wait with the verbs
`)
}

// TestReadOnly: no key changes anything, and each says why.
func TestReadOnly(t *testing.T) {
	w := newWorld(t, access.Local())
	w.declare(cooling)
	w.cool()
	p := w.sit("", func(o *screen.Options) { o.ReadOnly = true })
	p.play("keys :po<enter>\nwait cooling\n")
	for _, key := range []string{"e", "P", "n", "u"} {
		p.play("keys " + key + "\nwait read-only:\nkeys j\ngone read-only:")
	}
	p.play("keys :tr<enter>\nwait cooling-\n")
	for _, key := range []string{"a", "P", "c", "t", "R"} {
		p.play("keys " + key + "\nwait read-only:\nkeys j\ngone read-only:")
	}
	p.play("keys p\nwait step 0 of\nkeys :au<enter>\nwait AUDIT (2)\n") // what the test declared by itself, and no more
}

// oneUser is a console that knows one user, who may see and plan.
func oneUser(t *testing.T) access.Authority {
	t.Helper()
	users := filepath.Join(t.TempDir(), "users.yaml")
	text := fmt.Sprintf("users:\n- {name: ada, tokenSHA256: %x, verbs: [get, plan]}\n", sha256.Sum256([]byte("secret")))
	if err := os.WriteFile(users, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := access.Users(users, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// TestWithoutTheVerb: a refusal names the verb that is missing, and the help says so before.
func TestWithoutTheVerb(t *testing.T) {
	w := newWorld(t, oneUser(t))
	w.declare(cooling)
	p := w.sit("secret")
	p.play("keys :po<enter>\nwait cooling\nkeys P\nwait you lack the verb pause\nkeys ?\nwait (you lack the verb pause)\nwait (you lack the verb apply)\n")
}

// TestStranger: whom the console does not know is told what to give.
func TestStranger(t *testing.T) {
	p := newWorld(t, oneUser(t)).sit("wrong")
	p.play("wait does not know you\nwait --token-file\n")
}

// TestDisconnected: the last picture stays while the console is away, and says since when; it goes on when it is back.
func TestDisconnected(t *testing.T) {
	w := newWorld(t, access.Local())
	p := w.sit("")
	p.play("wait 15 of 15 up\nkeys :nodes<enter>\nwait n15\n")
	address := w.address
	w.stop()
	p.play("wait disconnected since\nwait stale since\nwait n15\nkeys D\nkeys n1<enter>\nwait no console answers at\nkeys :tr<enter>\nwait Nothing since\n")
	w.serve(address)
	p.play("gone disconnected since\nwait There is no transition.\nkeys :nodes<enter>\nwait n15\ngone stale since\n")
	p.Resize(60, 20)
	p.play("wait needs 80 x 24\n")
	p.Resize(120, 40)
	p.play("wait n15\nwait ADDRESS\nkeys q\n")
	<-p.Ended()
}
