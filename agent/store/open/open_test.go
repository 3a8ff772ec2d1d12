package open_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/file"
	"github.com/restripe/restripe/agent/store/open"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

func TestEverySchemeOpensItsStore(t *testing.T) {
	directory := t.TempDir()
	memcached := server.Memcached(t)
	redis := server.Redis(t, "--requirepass", "se%cret:/@?")
	for address, want := range map[string]store.Info{
		"mem:":                          {Kind: "mem", Location: "mem:"},
		"file:" + directory + "/a":      {Kind: "file", Location: "file:" + directory + "/a"},
		"file://" + directory + "/b/c":  {Kind: "file", Location: "file:" + directory + "/b/c"},
		"memcached://" + memcached.Addr: {Kind: "memcached", Location: "memcached://" + memcached.Addr},
		"redis://:se%25cret%3A%2F%40%3F@" + redis.Addr + "/3":        {Kind: "redis", Location: "redis://" + redis.Addr + "/3"},
		"redis://default:se%25cret%3A%2F%40%3F@" + redis.Addr + "/0": {Kind: "redis", Location: "redis://" + redis.Addr + "/0"},
	} {
		s, err := open.Open(t.Context(), address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		info, err := s.Info(t.Context())
		if err != nil || info.Kind != want.Kind || info.Location != want.Location {
			t.Errorf("%s: %+v, %v; want %s at %s", address, info, err, want.Kind, want.Location)
		}
		if err := s.Create(t.Context(), "k", []byte("v")); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestOpenEndsWithTheContext(t *testing.T) {
	process := server.Redis(t)
	process.Suspend()
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := open.Open(ctx, "redis://"+process.Addr); !errors.Is(err, context.Canceled) {
		t.Errorf("opening a suspended server while being cancelled: %v", err)
	}
	if _, err := open.Open(ctx, "memcached://"+process.Addr); !errors.Is(err, context.Canceled) {
		t.Errorf("opening with an ended context: %v", err)
	}
}

func TestErrorsNameTheAddressWithoutSecretsAndTheCure(t *testing.T) {
	redis := server.Redis(t, "--requirepass", "right")
	down := server.Memcached(t)
	down.Kill()
	foreign := t.TempDir()
	if err := os.WriteFile(foreign+"/photo", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		address string
		want    error
		says    []string
	}{
		{"", open.ErrAddress, []string{"no scheme", "file:/directory"}},
		{"/var/lib/restripe", open.ErrAddress, []string{"/var/lib/restripe", "no scheme", "file:/directory"}},
		{"ftp://user:hidden@host/x", open.ErrAddress, []string{"ftp://host/x", "unknown scheme", "redis://"}},
		{"ceph:", open.ErrAddress, []string{"name a pool", "ceph:pool?conf="}},
		{"ceph:node1?password=hidden", open.ErrAddress, []string{"ceph:node1", `"password"`, "keyring"}},
		{"mem:x", open.ErrAddress, []string{"mem:"}},
		{"file:", open.ErrAddress, []string{"file:/var/lib/restripe"}},
		{"file://elsewhere/x", open.ErrAddress, []string{"elsewhere"}},
		{"file:" + foreign, file.ErrForeign, []string{foreign, "photo", "empty directory"}},
		{"memcached://", open.ErrAddress, []string{"no host"}},
		{"memcached://user:hidden@host:1", open.ErrAddress, []string{"memcached://host:1", "SASL"}},
		{"memcached://host:1/path", open.ErrAddress, []string{"memcached://host:port"}},
		{"memcached://" + down.Addr, store.ErrDown, []string{down.Addr, "server runs"}},
		{"redis://user:hid%zen@host", open.ErrAddress, []string{"redis://host", "percent-encode"}},
		{"redis://:hid?den@host:1", open.ErrAddress, []string{"redis://...", "percent-encode"}},
		{"redis://user:hidden", open.ErrAddress, []string{"redis://...", "percent-encode"}},
		{"redis://:hid/den@host:1", open.ErrAddress, []string{"host:1", "percent-encode"}},
		{"redis://:hidden@host/x", open.ErrAddress, []string{"redis://host/x", "number of a database"}},
		{"redis://:hidden@host?ca=hidden", open.ErrAddress, []string{"redis://host", "ca"}},
		{"rediss://:hidden@host?password=hidden", open.ErrAddress, []string{"rediss://host", `"password"`}},
		{"redis://:hidden@" + redis.Addr, store.ErrAuth, []string{"redis://" + redis.Addr, "password"}},
		{"redis://" + redis.Addr, store.ErrAuth, []string{"redis://" + redis.Addr, "password"}},
	} {
		s, err := open.Open(t.Context(), c.address)
		if err == nil {
			s.Close()
			t.Errorf("%s opens", c.address)
			continue
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.address, err, c.want)
		}
		if strings.Contains(err.Error(), "hid") {
			t.Errorf("%s: the error shows the secret: %v", c.address, err)
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error does not say %q: %v", c.address, part, err)
			}
		}
	}
}

func FuzzRedact(f *testing.F) {
	for _, secret := range []string{"hidden", "a@b", "a/b", "a:b", "a?b", "%zz", "#"} {
		f.Add("redis", "user", secret)
	}
	f.Fuzz(func(t *testing.T, scheme, user, secret string) {
		const mark = "SECRET"
		address := scheme + "://" + user + ":" + mark + secret + "@host:1/0?key=" + mark
		if shown := open.Redact(address); strings.Contains(shown, mark) && !strings.Contains(scheme, mark) {
			t.Errorf("%q is shown as %q", address, shown)
		}
	})
}
