package clients_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/restripe/restripe/agent/pki"
)

// The users of a gateway that asks who its clients are.
var (
	everything = accessKey{"EVERYTHING", "the-secret-of-one-who-may-do-everything"}
	photos     = accessKey{"PHOTOS", "the-secret-of-one-who-reads-photos"}
	wrong      = accessKey{everything.id, "another-secret-than-that-of-the-file"}
	unknown    = accessKey{"UNKNOWN", "the-secret-of-one-who-is-not-known"}
)

const usersFile = `users:
- {name: everything, accessKey: {id: EVERYTHING, secret: the-secret-of-one-who-may-do-everything}, objects: [{may: [admin]}]}
- name: photos
  accessKey: {id: PHOTOS, secret: the-secret-of-one-who-reads-photos}
  objects: [{may: [read, list], prefix: shared/photos/}]
`

// asking is a gateway over TLS that asks who its clients are.
type asking struct {
	gateway
	authority string // file
	transport *http.Transport
}

// users has clients show keys at a gateway over TLS.
func (s *suite) users(t *testing.T) {
	file := filepath.Join(s.directory, "users.yaml")
	writeFile(t, file, []byte(usersFile))
	g := asking{authority: filepath.Join(s.directory, "gw3", pki.AuthorityFile)}
	g.gateway, _ = s.another(t, "gw3", "--users", file, "--https")
	text, err := os.ReadFile(g.authority)
	if err != nil {
		t.Fatal(err)
	}
	believed := x509.NewCertPool()
	believed.AppendCertsFromPEM(text)
	g.transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: believed}}
	t.Cleanup(g.transport.CloseIdleConnections)
	t.Run("of", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T){
			"aws-sdk": g.awsSDK, "minio-go": g.minio, "boto3": g.boto3, "s3cmd": g.s3cmd, "rclone": g.rclone, "prefix": g.prefix,
			"redis-py-and-pymemcache": g.values, "go-redis": g.goRedis,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t)
			})
		}
	})
}

func (g asking) url() string { return "https://" + g.s3 }

func (g asking) awsSDK(t *testing.T) {
	useS3(t, newAWS(g.url(), everything, g.transport, 1), &http.Client{Transport: g.transport}, "aws-sdk-tls")
	wrongKeys(t, func(key accessKey) s3Client { return newAWS(g.url(), key, g.transport, 1) })
}

func (g asking) minio(t *testing.T) {
	useS3(t, newMinio(t, g.url(), everything, g.transport), &http.Client{Transport: g.transport}, "minio-go-tls")
	wrongKeys(t, func(key accessKey) s3Client { return newMinio(t, g.url(), key, g.transport) })
}

// wrongKeys: whoever has none of the keys of the gateway is told so, and changes nothing.
func wrongKeys(t *testing.T, client func(accessKey) s3Client) {
	t.Helper()
	for key, want := range map[accessKey]string{wrong: "SignatureDoesNotMatch", unknown: "InvalidAccessKeyId"} {
		c := client(key)
		_, listed := c.buckets(t.Context())
		_, put := c.put(t.Context(), "wrong-keys", "a", []byte("a"), s3Options{})
		_, got := c.get(t.Context(), "wrong-keys", "a")
		for _, err := range []error{listed, put, got} {
			if code(err) != want {
				t.Errorf("with the key %v: %q, want the code %s", key, code(err), want)
			}
		}
	}
	if _, err := client(everything).get(t.Context(), "wrong-keys", "a"); code(err) != "NoSuchBucket" {
		t.Errorf("after puts with wrong keys: %q, want the code NoSuchBucket", code(err))
	}
}

func (g asking) boto3(t *testing.T) {
	runBoto3(t, everything, "s3_values.py", g.url(), g.authority)
}

func (g asking) s3cmd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, letters(13, 100_000))
	do := func(key accessKey, more ...string) answer {
		t.Helper()
		return program(t, "s3cmd", s3Environment(key), append(s3cmdArguments(t, g.s3, g.authority, key), more...)...)
	}
	do(everything, "mb", "s3://s3cmd-tls").must(t)
	do(everything, "put", file, "s3://s3cmd-tls/a").must(t)
	do(everything, "get", "s3://s3cmd-tls/a", file+".got").must(t)
	if got, err := os.ReadFile(file + ".got"); err != nil || !bytes.Equal(got, letters(13, 100_000)) {
		t.Errorf("it reads %d bytes, or others, %v", len(got), err)
	}
	for key, want := range map[accessKey]string{wrong: "SignatureDoesNotMatch", unknown: "InvalidAccessKeyId", photos: "AccessDenied"} {
		if said := do(key, "put", file, "s3://s3cmd-tls/b"); said.code == 0 || !strings.Contains(said.messages, want) {
			t.Errorf("with the key %v: %v, want %s", key, said, want)
		}
	}
	if out := do(everything, "ls", "s3://s3cmd-tls").must(t); strings.Contains(out, "/b") {
		t.Errorf("after puts that were refused it lists %q", out)
	}
}

func (g asking) rclone(t *testing.T) {
	directory := t.TempDir()
	files := tree(t, directory)
	do := func(key accessKey, arguments ...string) answer {
		t.Helper()
		return program(t, "rclone", rcloneEnvironment(g.url(), g.authority, key), arguments...)
	}
	do(everything, "sync", directory, "r:rclone-tls").must(t)
	do(everything, "check", "--download", directory, "r:rclone-tls").must(t)
	back := t.TempDir()
	do(everything, "copy", "r:rclone-tls", back).must(t)
	sameTree(t, back, files)
	for key, want := range map[accessKey]string{wrong: "SignatureDoesNotMatch", unknown: "InvalidAccessKeyId", photos: "AccessDenied"} {
		if said := do(key, "lsf", "r:rclone-tls"); said.code == 0 || !strings.Contains(said.messages, want) {
			t.Errorf("with the key %v: %v, want %s", key, said, want)
		}
	}
}

// prefix: who may read and list what begins with a prefix may do nothing else.
func (g asking) prefix(t *testing.T) {
	ctx := t.Context()
	owner := newAWS(g.url(), everything, g.transport, 1)
	if err := owner.makeBucket(ctx, "shared"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"photos/a", "letters/a"} {
		if _, err := owner.put(ctx, "shared", key, []byte(key), s3Options{}); err != nil {
			t.Fatal(err)
		}
	}
	reader := newAWS(g.url(), photos, g.transport, 1)
	if got, err := reader.get(ctx, "shared", "photos/a"); err != nil || string(got) != "photos/a" {
		t.Errorf("get: %q, %v", got, err)
	}
	if keys, _, err := reader.list(ctx, 2, "shared", "photos/", ""); err != nil || !slices.Equal(keys, []string{"photos/a"}) {
		t.Errorf("list: %q, %v", keys, err)
	}
	if names, err := reader.buckets(ctx); err != nil || !slices.Equal(names, []string{"shared"}) {
		t.Errorf("buckets: %q, %v", names, err)
	}
	_, got := reader.get(ctx, "shared", "letters/a")
	_, put := reader.put(ctx, "shared", "photos/b", []byte("b"), s3Options{})
	_, _, listed := reader.list(ctx, 2, "shared", "", "")
	signed, err := reader.signPut(ctx, "shared", "photos/b")
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"get": got, "put": put, "list": listed, "delete": reader.remove(ctx, "shared", "photos/a"),
		"copy":             reader.copy(ctx, "shared", "photos/a", "photos/b", s3Options{}),
		"copy of another":  reader.copy(ctx, "shared", "letters/a", "photos/b", s3Options{}),
		"upload":           reader.upload(ctx, "shared", "photos/b", letters(14, partSize+1), s3Options{}),
		"a bucket":         reader.makeBucket(ctx, "shared-2"),
		"deletes together": reader.remove(ctx, "shared", "photos/a", "letters/a"),
	} {
		if code(err) != "AccessDenied" && !strings.Contains(code(err), "AccessDenied") {
			t.Errorf("%s: %q, want the code AccessDenied", what, code(err))
		}
	}
	if status, text := ask(t, &http.Client{Transport: g.transport}, http.MethodPut, signed, []byte("b")); status != http.StatusForbidden {
		t.Errorf("put by an address that one signed who may not: %d %s", status, text)
	}
	for _, key := range []string{"photos/a", "letters/a", "photos/b"} {
		status, text := ask(t, &http.Client{Transport: g.transport}, http.MethodGet, g.url()+"/shared/"+key, nil)
		if status != http.StatusForbidden || !strings.Contains(string(text), "AccessDenied") {
			t.Errorf("get of %s without a key: %d %s", key, status, text)
		}
	}
	if keys, _, err := owner.list(ctx, 2, "shared", "", ""); err != nil || !slices.Equal(keys, []string{"letters/a", "photos/a"}) {
		t.Errorf("after what was refused there are %q, %v", keys, err)
	}
}

func (g asking) values(t *testing.T) {
	for _, key := range []accessKey{everything, photos, wrong} {
		said := runPython(t, "users_values.py", g.redis, g.memcached, g.authority, key.id, key.secret)
		want := map[accessKey]string{everything: "stored", photos: "not allowed", wrong: "not known"}[key]
		if got := strings.TrimSpace(said.must(t)); got != "redis: "+want+" memcached: "+want {
			t.Errorf("with the key %v: %q, want %q of both", key, got, want)
		}
	}
}

func (g asking) goRedis(t *testing.T) {
	for key, want := range map[accessKey]string{everything: "", photos: "NOPERM", wrong: "WRONGPASS", {}: "NOAUTH"} {
		r := redis.NewClient(&redis.Options{
			Addr: g.redis, Username: key.id, Password: key.secret, TLSConfig: g.transport.TLSClientConfig, MaxRetries: -1,
		})
		err := r.Set(t.Context(), "users/go-redis", "one", 0).Err()
		if text := fmt.Sprint(err); err == nil && want != "" || err != nil && (want == "" || !strings.HasPrefix(text, want)) {
			t.Errorf("with the key %v: %v, want %q", key, err, want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
