//go:build ceph

package ceph

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/ceph/cephtest"
)

// within fails the test if what is done takes longer than allowed.
func within(t *testing.T, allowed time.Duration, what string, do func()) {
	t.Helper()
	began := time.Now()
	do()
	if took := time.Since(began); took > allowed {
		t.Errorf("%s took %v, more than %v", what, took, allowed)
	}
}

func TestADeadOSDIsAnErrorAndWhatWasAcknowledgedIsThereWhenItReturns(t *testing.T) {
	w := start(t, cephtest.Options{Hosts: 1, OSDsPerHost: 2, Bluestore: true})
	w.timeout = 2 * time.Second
	s := w.open(t)
	defer s.Close()
	value := bytes.Repeat([]byte("value"), 50_000)
	var mutex sync.Mutex
	acknowledged, failures := []string{}, 0
	var group sync.WaitGroup
	enough := make(chan struct{})
	for creator := range 8 {
		group.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("k/%d/%d", creator, i)
				began := time.Now()
				err := s.Create(t.Context(), key, value)
				if took := time.Since(began); took > 3*w.timeout {
					t.Errorf("creating %s took %v", key, took)
				}
				mutex.Lock()
				if err == nil {
					acknowledged = append(acknowledged, key)
				}
				if len(acknowledged) == 40 {
					close(enough)
				}
				mutex.Unlock()
				if err != nil {
					if !errors.Is(err, store.ErrDown) {
						t.Errorf("creating on a dead OSD: %v, want %v", err, store.ErrDown)
					}
					mutex.Lock()
					failures++
					mutex.Unlock()
					return
				}
			}
		})
	}
	<-enough
	must(t, w.KillOSD(0))
	group.Wait() // each ends with an error, as soon as a key falls on the dead OSD
	if failures != 8 {
		t.Errorf("%d of 8 creators ended with an error", failures)
	}
	must(t, w.StartOSD(0))
	must(t, w.AwaitServing())
	for _, key := range acknowledged {
		got := make([]byte, len(value)+1)
		if count, err := s.ReadAt(t.Context(), key, got, 0); err != nil || !bytes.Equal(got[:count], value) {
			t.Errorf("%s was acknowledged, and reads %d bytes after the restart: %v", key, count, err)
		}
	}
	t.Logf("%d values were acknowledged, all are there", len(acknowledged))
}

func TestWithoutMonitorsValuesAreServedAndTheRestIsAnError(t *testing.T) {
	w := start(t, cephtest.Options{Hosts: 1, Bluestore: true})
	w.timeout = 2 * time.Second
	s := w.open(t)
	defer s.Close()
	must(t, s.Create(t.Context(), incarnationKey, []byte("first")))
	must(t, s.Create(t.Context(), "before", []byte("value")))
	must(t, w.StopMon())
	within(t, 3*w.timeout, "creating and reading without monitors", func() {
		must(t, s.Create(t.Context(), "meanwhile", []byte("value")))
		for _, key := range []string{"before", "meanwhile", incarnationKey} {
			if _, err := s.ReadAt(t.Context(), key, make([]byte, 5), 0); err != nil {
				t.Errorf("reading %s without monitors: %v", key, err)
			}
		}
	})
	within(t, 5*w.timeout, "asking for what monitors know", func() {
		if _, err := s.Info(t.Context()); !errors.Is(err, store.ErrDown) {
			t.Errorf("describing without monitors: %v, want %v", err, store.ErrDown)
		}
		_, err := Open(t.Context(), w.storeOptions("pool1"))
		if !errors.Is(err, store.ErrDown) || !strings.Contains(fmt.Sprint(err), w.Config()) {
			t.Errorf("opening without monitors: %v, want %v and the name of the configuration", err, store.ErrDown)
		}
	})
	must(t, w.StartMon())
	if _, err := s.Info(t.Context()); err != nil {
		t.Errorf("describing after the monitor is back: %v", err)
	}
	must(t, s.Create(t.Context(), "after", []byte("value")))
	must(t, s.Close())
}

func TestAFullPoolSaysSoAndKeepsWhatItHas(t *testing.T) {
	w := start(t, cephtest.Options{Hosts: 1})
	s := w.open(t)
	defer s.Close()
	value := make([]byte, 1<<20)
	must(t, s.Create(t.Context(), "a", value))
	must(t, s.Create(t.Context(), "b", value))
	must(t, w.LimitPool("pool1", 1<<20, true))
	within(t, 5*time.Second, "an answer of a full pool", func() {
		// The OSDs may know later than the monitors: what they take meanwhile is whole.
		var err error
		for i := 0; err == nil; i++ {
			err = s.Create(t.Context(), fmt.Sprintf("more/%d", i), value)
		}
		if !errors.Is(err, store.ErrFull) {
			t.Errorf("creating in a full pool: %v, want %v", err, store.ErrFull)
		}
	})
	if count, err := s.ReadAt(t.Context(), "a", make([]byte, 1<<20), 0); err != nil || count != 1<<20 {
		t.Errorf("reading from a full pool: %d bytes, %v", count, err)
	}
	if info, err := s.Info(t.Context()); err != nil || info.CapacityBytes != 1<<20 {
		t.Errorf("a pool with a quota of 1 MiB: %+v, %v", info, err)
	}
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Errorf("deleting from a full pool: %v", err)
	}
	must(t, w.LimitPool("pool1", 0, false))
	must(t, s.Create(t.Context(), "again", value))
}

// openings are stores that must not open, and what the error says.
type opening struct {
	name    string
	options Options
	want    error
	says    []string
}

func TestWhatCannotBeANodeIsRefusedWithReasonAndCure(t *testing.T) {
	w := start(t, cephtest.Options{Hosts: 3})
	w.timeout = 2 * time.Second
	s := w.open(t) // pool1
	must(t, s.Close())
	for _, command := range []struct {
		prefix    string
		arguments map[string]any
	}{
		{"osd crush rule create-simple", map[string]any{"name": "everywhere", "root": "default", "type": "osd", "mode": "firstn"}},
		{"osd pool create", map[string]any{"pool": "three", "pg_num": 1, "pool_type": "replicated", "rule": "everywhere", "size": 3}},
		{"osd pool create", map[string]any{"pool": "wide", "pg_num": 1, "pool_type": "replicated", "rule": "everywhere", "size": 1}},
		{"osd pool create", map[string]any{"pool": "images", "pg_num": 1, "pool_type": "replicated", "rule": "pool1", "size": 1}},
		{"osd erasure-code-profile set", map[string]any{"name": "two", "profile": []string{"k=2", "m=1", "crush-failure-domain=host"}}},
		{"osd pool create", map[string]any{"pool": "coded", "pg_num": 1, "pool_type": "erasure", "erasure_code_profile": "two"}},
		{"osd pool application enable", map[string]any{"pool": "three", "app": "restripe"}},
		{"osd pool application enable", map[string]any{"pool": "wide", "app": "restripe"}},
		{"osd pool application enable", map[string]any{"pool": "coded", "app": "restripe"}},
		{"osd pool application enable", map[string]any{"pool": "images", "app": "rbd"}},
	} {
		_, err := w.Command(command.prefix, command.arguments)
		must(t, err)
	}
	stranger, err := w.CreateUser("stranger", "osd", "allow rw")
	must(t, err)
	wrong := filepath.Join(t.TempDir(), "keyring")
	must(t, os.WriteFile(wrong, []byte("[client.restripe]\n\tkey = AQDVcrlnLBt0LRAAJwC6dXJMUVT9cE3XwwBZPQ==\n"), 0o600))
	nobody := filepath.Join(t.TempDir(), "ceph.conf")
	must(t, os.WriteFile(nobody, []byte("[global]\nmon host = [v2:127.0.0.1:1]\n"), 0o600))
	with := func(pool string, change func(*Options)) Options {
		options := w.storeOptions(pool)
		change(&options)
		return options
	}
	as := func(*Options) {}
	for _, c := range []opening{
		{"no pool", with("", as), ErrPool, []string{"no pool"}},
		{"a missing pool", with("nowhere", as), ErrPool, []string{"nowhere", "pool1", "restripe ceph init"}},
		{"a pool of size 3", with("three", as), ErrPool, []string{"three", "3 copies", "restripe ceph init", "size 1"}},
		{"a pool over all hosts", with("wide", as), ErrPool, []string{"wide", "everywhere", "default", "one host"}},
		{"another application's pool", with("images", as), ErrPool, []string{"images", "rbd", "application enable images restripe"}},
		{"an erasure-coded pool", with("coded", as), ErrPool, []string{"coded", "erasure-coded"}},
		{"a wrong key", with("pool1", func(o *Options) { o.Keyring = wrong }), store.ErrAuth, []string{"client.restripe", wrong, "ceph auth get"}},
		{"an unknown user", with("pool1", func(o *Options) { o.User = "nobody" }), store.ErrAuth, []string{"client.nobody", "ceph auth get client.nobody"}},
		{"a user without rights", with("pool1", func(o *Options) { o.User, o.Keyring = "stranger", stranger }), store.ErrAuth, []string{"client.stranger"}},
		{"no keyring", with("pool1", func(o *Options) { o.Keyring = "/nowhere/keyring" }), ErrConfig, []string{"/nowhere/keyring", "right path"}},
		{"no configuration", with("pool1", func(o *Options) { o.Config = "/nowhere/ceph.conf" }), ErrConfig, []string{"/nowhere/ceph.conf", "right path"}},
		{"no monitors", with("pool1", func(o *Options) { o.Config = nobody }), store.ErrDown, []string{nobody, "monitors", "2s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			within(t, 3*w.timeout, "refusing", func() {
				s, err := Open(t.Context(), c.options)
				if err == nil {
					s.Close()
					t.Fatal("it opens")
				}
				t.Log(err)
				if !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				for _, part := range c.says {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("the error does not say %q: %v", part, err)
					}
				}
			})
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ended, w.storeOptions("pool1")); !errors.Is(err, context.Canceled) {
		t.Errorf("opening with an ended context: %v", err)
	}
}

func TestAUserWithoutRightsOnThePoolIsRefusedAtTheFirstOperation(t *testing.T) {
	w := start(t, cephtest.Options{Hosts: 1})
	s := w.open(t)
	defer s.Close()
	keyring, err := w.CreateUser("reader", "mon", "allow r", "osd", "allow r tag restripe *=*")
	must(t, err)
	options := w.storeOptions("pool1")
	options.User, options.Keyring = "reader", keyring
	reader, err := Open(t.Context(), options)
	must(t, err)
	defer reader.Close()
	if err := reader.Create(t.Context(), "k", nil); !errors.Is(err, store.ErrAuth) {
		t.Errorf("creating without the right to: %v, want %v", err, store.ErrAuth)
	}
	must(t, s.Create(t.Context(), "k", []byte("v")))
	if _, err := reader.ReadAt(t.Context(), "k", make([]byte, 1), 0); err != nil {
		t.Errorf("reading with the right to: %v", err)
	}
}

func TestForeignAndDamagedObjectsAreCorruptAndNeverOverwritten(t *testing.T) {
	w := start(t, cephtest.Options{Hosts: 1})
	s := w.open(t)
	defer s.Close()
	admin, err := w.Connect()
	must(t, err)
	defer admin.Shutdown()
	pool, err := admin.OpenIOContext("pool1")
	must(t, err)
	defer pool.Destroy()
	must(t, pool.WriteFull("foreign", []byte("photo")))
	for _, key := range []string{"changed", "cut"} {
		must(t, s.Create(t.Context(), key, []byte("value")))
	}
	must(t, pool.Write("changed", []byte("V"), 0))
	must(t, pool.Truncate("cut", 3))
	for _, key := range []string{"foreign", "changed", "cut"} {
		if _, err := s.ReadAt(t.Context(), key, make([]byte, 5), 0); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("reading %s: %v, want %v", key, err, store.ErrCorrupt)
		}
		if err := s.Create(t.Context(), key, nil); !errors.Is(err, store.ErrExists) {
			t.Errorf("creating over %s: %v, want %v", key, err, store.ErrExists)
		}
	}
	if err := s.Create(t.Context(), "large", make([]byte, valueLimit+1)); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("creating more than the limit: %v, want %v", err, store.ErrTooLarge)
	}
	must(t, s.Create(t.Context(), "largest", make([]byte, valueLimit)))
}

func TestAPoolThatIsGoneIsDownAndNotEmpty(t *testing.T) {
	w := start(t, cephtest.Options{Hosts: 1})
	s := w.open(t)
	defer s.Close()
	must(t, s.Create(t.Context(), "k", []byte("v")))
	_, err := w.Command("osd pool delete", map[string]any{"pool": "pool1", "pool2": "pool1", "yes_i_really_really_mean_it": true})
	must(t, err)
	must(t, s.fetchLatest(t.Context()))
	if _, err := s.ReadAt(t.Context(), "k", make([]byte, 1), 0); !errors.Is(err, store.ErrDown) {
		t.Errorf("reading from a pool that is gone: %v, want %v", err, store.ErrDown)
	}
	must(t, w.CreateNodePool("pool1again", "node1", 1))
	if err := s.Create(t.Context(), "k", nil); !errors.Is(err, store.ErrDown) {
		t.Errorf("creating in a pool that is gone: %v, want %v", err, store.ErrDown)
	}
}

// Callers that never wait until librados gives up, as probes do, reach an OSD that came back at another address.
func TestShortOperationsReachAnOSDThatWasStartedAnew(t *testing.T) {
	w := start(t, cephtest.Options{Hosts: 1, Bluestore: true})
	s := w.open(t)
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	answers := make(chan time.Time, 1) // when the last operation that was answered began
	for worker := range 6 {
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				began := time.Now()
				short, cancel := context.WithTimeout(ctx, time.Second)
				err := s.Create(short, fmt.Sprintf("k/%d/%d", worker, i), []byte("value"))
				cancel()
				if err == nil {
					select {
					case <-answers:
					default:
					}
					select {
					case answers <- began:
					default:
					}
				}
			}
		})
	}
	awaitAnswer := func() {
		t.Helper()
		back, deadline := time.Now(), time.After(time.Minute)
		for {
			select {
			case began := <-answers:
				if began.After(back) {
					return
				}
			case <-deadline:
				t.Fatal("an OSD that is up again is not reached within a minute")
			}
		}
	}
	for range 3 {
		awaitAnswer()
		for range 2 { // the second time before the first is known
			must(t, w.KillOSD(0))
			must(t, w.StartOSD(0))
		}
	}
	awaitAnswer()
}
