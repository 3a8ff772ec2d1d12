package clients_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// letters are bytes that follow from a seed.
func letters(seed uint64, size int) []byte {
	var key [32]byte
	key[0] = byte(seed)
	data := make([]byte, size)
	_, _ = rand.NewChaCha8(key).Read(data) // which never fails
	return data
}

func (s *suite) awsSDK(t *testing.T) {
	useS3(t, newAWS("http://"+s.first.s3, anyKey, http.DefaultTransport, 1), http.DefaultClient, "aws-sdk")
}

func (s *suite) minio(t *testing.T) {
	useS3(t, newMinio(t, "http://"+s.first.s3, anyKey, http.DefaultTransport), http.DefaultClient, "minio-go")
}

// useS3 does with a client what it can do, in a new bucket. asker is who asks at addresses that the client has signed.
func useS3(t *testing.T, c s3Client, asker *http.Client, bucket string) {
	t.Helper()
	ctx := t.Context()
	refused := func(what, want string, err error) {
		t.Helper()
		if got := code(err); got != want {
			t.Errorf("%s: %q, want the code %s", what, got, want)
		}
	}
	if err := c.makeBucket(ctx, bucket); err != nil {
		t.Fatal(err)
	}
	if names, err := c.buckets(ctx); err != nil || !slices.Contains(names, bucket) {
		t.Errorf("the bucket is not among %q, %v", names, err)
	}

	contents := map[string][]byte{
		"empty": {}, "letters/a": letters(1, 1), "letters/b c+d%2F&e=ü": letters(2, 5_000), "letters//..//x": letters(3, 200),
		"large": letters(4, 300_000),
	}
	for i := range 8 {
		contents[fmt.Sprintf("many/%d/%d", i%4, i)] = letters(5, i)
	}
	for key, data := range contents {
		with := s3Options{contentType: "text/x-test", metadata: map[string]string{"colour": "light blue", "size": fmt.Sprint(len(data))}}
		if _, err := c.put(ctx, bucket, key, data, with); err != nil {
			t.Fatalf("put of %q: %v", key, err)
		}
		if got, err := c.get(ctx, bucket, key); err != nil || !bytes.Equal(got, data) {
			t.Errorf("get of %q: %d bytes, want %d, or others, %v", key, len(got), len(data), err)
		}
		got, err := c.stat(ctx, bucket, key)
		sum := md5.Sum(data)
		if err != nil || got.size != int64(len(data)) || got.contentType != with.contentType || !maps.Equal(got.metadata, with.metadata) ||
			got.tag != hex.EncodeToString(sum[:]) && !strings.Contains(got.tag, "-") {
			t.Errorf("head of %q: %+v, %v", key, got, err)
		}
	}
	if got, err := c.getRange(ctx, bucket, "large", 65_530, 65_549); err != nil || !bytes.Equal(got, contents["large"][65_530:65_550]) {
		t.Errorf("a range: %d bytes, %v", len(got), err)
	}
	_, err := c.get(ctx, bucket, "none")
	refused("get of nothing", "NoSuchKey", err)

	lists(t, c, bucket, slices.Sorted(maps.Keys(contents)))
	conditions(t, c, bucket)

	const copied = "letters/b c+d%2F&e=ü"
	if err := c.copy(ctx, bucket, copied, "copy", s3Options{}); err != nil {
		t.Errorf("copy: %v", err)
	}
	if got, err := c.stat(ctx, bucket, "copy"); err != nil || got.metadata["colour"] != "light blue" || got.contentType != "text/x-test" {
		t.Errorf("a copy: %+v, %v", got, err)
	}
	other := s3Options{contentType: "text/y-test", metadata: map[string]string{"colour": "red"}}
	if err := c.copy(ctx, bucket, "copy", "copy", other); err != nil {
		t.Errorf("copy onto itself with other metadata: %v", err)
	}
	if got, err := c.stat(ctx, bucket, "copy"); err != nil || !maps.Equal(got.metadata, other.metadata) ||
		got.contentType != other.contentType {
		t.Errorf("a copy with other metadata: %+v, %v", got, err)
	}
	if got, err := c.get(ctx, bucket, "copy"); err != nil || !bytes.Equal(got, contents[copied]) {
		t.Errorf("a copy reads as %d bytes, %v", len(got), err)
	}

	large := letters(6, 2*partSize+3_000_001)
	with := s3Options{contentType: "text/x-test", metadata: map[string]string{"parts": "3"}}
	if err := c.upload(ctx, bucket, "parts", large, with); err != nil {
		t.Fatalf("upload in parts: %v", err)
	}
	if got, err := c.download(ctx, bucket, "parts"); err != nil || !bytes.Equal(got, large) {
		t.Errorf("what was uploaded in parts: %d bytes, want %d, or others, %v", len(got), len(large), err)
	}
	if got, err := c.stat(ctx, bucket, "parts"); err != nil || !maps.Equal(got.metadata, with.metadata) ||
		!strings.HasSuffix(got.tag, "-3") || got.contentType != with.contentType {
		t.Errorf("head of what was uploaded in parts: %+v, %v", got, err)
	}

	signed, err := c.signPut(ctx, bucket, "signed")
	if err != nil {
		t.Fatal(err)
	}
	if status, text := ask(t, asker, http.MethodPut, signed, []byte("by an address")); status != http.StatusOK {
		t.Errorf("put by an address: %d %s", status, text)
	}
	if signed, err = c.signGet(ctx, bucket, "signed"); err != nil {
		t.Fatal(err)
	}
	if status, text := ask(t, asker, http.MethodGet, signed, nil); status != http.StatusOK || string(text) != "by an address" {
		t.Errorf("get by an address: %d %s", status, text)
	}

	refused("removing a bucket that has objects", "BucketNotEmpty", c.removeBucket(ctx, bucket))
	if err := c.remove(ctx, bucket, "signed"); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err := c.remove(ctx, bucket, append(slices.Collect(maps.Keys(contents)), "copy", "parts", "once", "none")...); err != nil {
		t.Errorf("deletes together: %v", err)
	}
	if keys, prefixes, err := c.list(ctx, 2, bucket, "", ""); err != nil || len(keys)+len(prefixes) > 0 {
		t.Errorf("left are %q %q, %v", keys, prefixes, err)
	}
	if err := c.removeBucket(ctx, bucket); err != nil {
		t.Errorf("removing the bucket: %v", err)
	}
	_, _, err = c.list(ctx, 2, bucket, "", "")
	refused("a listing of what was removed", "NoSuchBucket", err)
}

// lists lists a bucket in pages of a few.
func lists(t *testing.T, c s3Client, bucket string, keys []string) {
	t.Helper()
	for _, version := range []int{1, 2} {
		for _, q := range []struct {
			prefix, delimiter string
			keys, prefixes    []string
		}{
			{"", "", keys, nil},
			{"many/", "", slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !strings.HasPrefix(key, "many/") }), nil},
			{"", "/", []string{"empty", "large"}, []string{"letters/", "many/"}},
			{"many/", "/", nil, []string{"many/0/", "many/1/", "many/2/", "many/3/"}},
			{"none/", "/", nil, nil},
		} {
			got, prefixes, err := c.list(t.Context(), version, bucket, q.prefix, q.delimiter)
			if err != nil || !slices.Equal(got, q.keys) || !slices.Equal(prefixes, q.prefixes) {
				t.Errorf("version %d of a listing of %q with the delimiter %q: %q %q, want %q %q, %v", version, q.prefix, q.delimiter, got,
					prefixes, q.keys, q.prefixes, err)
			}
		}
	}
}

// conditions puts over what is as it was, and over what is not.
func conditions(t *testing.T, c s3Client, bucket string) {
	t.Helper()
	put := func(text string, options s3Options, want string) string {
		t.Helper()
		tag, err := c.put(t.Context(), bucket, "once", []byte(text), options)
		if code(err) != want {
			t.Errorf("put of %q under a condition: %q, want %q", text, code(err), want)
		}
		return tag
	}
	first := put("one", s3Options{ifAbsent: true}, "")
	put("two", s3Options{ifAbsent: true}, "PreconditionFailed")
	put("three", s3Options{ifMatch: first}, "")
	put("four", s3Options{ifMatch: first}, "PreconditionFailed")
	if got, err := c.get(t.Context(), bucket, "once"); err != nil || string(got) != "three" {
		t.Errorf("after puts under conditions it reads %q, %v", got, err)
	}
}

// ask sends one request that no client of S3 makes.
func ask(t *testing.T, asker *http.Client, method, address string, body []byte) (status int, text []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := asker.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err = io.ReadAll(answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, text
}

func (s *suite) boto3(t *testing.T) {
	t.Helper()
	runBoto3(t, anyKey, "s3_values.py", "http://"+s.first.s3)
}

// s3Environment is that of a program whose client of S3 has a key, without what the machine may have for other servers of S3.
func s3Environment(key accessKey) []string {
	environment := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(variable), "=")
		return strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "RCLONE_") || strings.HasSuffix(name, "_PROXY")
	})
	return append(environment, "AWS_ACCESS_KEY_ID="+key.id, "AWS_SECRET_ACCESS_KEY="+key.secret, "AWS_DEFAULT_REGION="+region,
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_EC2_METADATA_DISABLED=true", "RCLONE_CONFIG=")
}

func runBoto3(t *testing.T, key accessKey, program string, arguments ...string) {
	t.Helper()
	command := exec.Command(python(t), append([]string{filepath.Join("testdata", program)}, arguments...)...)
	command.Env = s3Environment(key)
	if out := finish(t, command).must(t); strings.TrimSpace(out) != "done" {
		t.Errorf("it ends with %q", out)
	}
}

// program runs a client of S3 that is a program of its own.
func program(t *testing.T, name string, environment []string, arguments ...string) answer {
	t.Helper()
	command := exec.Command(installed(t, name), arguments...)
	command.Env = environment
	return finish(t, command)
}

// tree writes files of many sizes, some of them in folders, and returns their names.
func tree(t *testing.T, directory string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{
		"empty": {}, "a": letters(7, 1), "in/a folder/b c+d": letters(8, 5_000), "in/c": letters(9, 300_000),
		"in/parts": letters(10, 2*partSize+2_000_001),
	}
	for name, data := range files {
		writeFile(t, filepath.Join(directory, name), data)
	}
	return files
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// sameTree compares the files below a directory.
func sameTree(t *testing.T, directory string, want map[string][]byte) {
	t.Helper()
	left := maps.Clone(want)
	err := filepath.WalkDir(directory, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(directory, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if want, known := left[name]; err == nil && (!known || !bytes.Equal(data, want)) {
			t.Errorf("%s has %d bytes, want %d, or others (known: %t)", name, len(data), len(want), known)
		}
		delete(left, name)
		return err
	})
	if err != nil || len(left) > 0 {
		t.Errorf("missing are %q, %v", slices.Sorted(maps.Keys(left)), err)
	}
}

// s3cmdArguments are those with which s3cmd reaches a gateway.
func s3cmdArguments(t *testing.T, address, authority string, key accessKey) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "s3cfg")
	writeFile(t, file, fmt.Appendf(nil, "[default]\naccess_key = %s\nsecret_key = %s\nhost_base = %s\nhost_bucket = %s\nuse_https = %t\n"+
		"ca_certs_file = %s\nmax_retries = 1\n", key.id, key.secret, address, address, authority != "", authority))
	return []string{"--config=" + file, "--no-progress", "--multipart-chunk-size-mb=5"}
}

func (s *suite) s3cmd(t *testing.T) {
	arguments := s3cmdArguments(t, s.first.s3, "", anyKey)
	do := func(more ...string) answer {
		t.Helper()
		return program(t, "s3cmd", s3Environment(anyKey), append(slices.Clone(arguments), more...)...)
	}
	directory := t.TempDir()
	files := tree(t, directory)
	const bucket = "s3://s3cmd"
	do("mb", bucket).must(t)
	if out := do("ls").must(t); !strings.Contains(out, bucket) {
		t.Errorf("the buckets are %q", out)
	}
	one := filepath.Join(directory, "in/c")
	do("put", "--add-header=x-amz-meta-colour:light blue", "--mime-type=text/x-test", one, bucket+"/put/c").must(t)
	out := do("info", bucket+"/put/c").must(t)
	for _, want := range []string{"File size: 300000", "MIME type: text/x-test", "x-amz-meta-colour: light blue"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in %q", want, out)
		}
	}
	got := filepath.Join(t.TempDir(), "got")
	do("get", bucket+"/put/c", got).must(t)
	writeFile(t, got, files["in/c"][:100_001])
	do("get", "--continue", bucket+"/put/c", got).must(t) // by a range
	if data, err := os.ReadFile(got); err != nil || !bytes.Equal(data, files["in/c"]) {
		t.Errorf("what was got in two pieces has %d bytes, or others, %v", len(data), err)
	}
	do("cp", bucket+"/put/c", bucket+"/put/copy").must(t)
	do("mv", bucket+"/put/copy", bucket+"/put/moved").must(t)
	do("modify", "--add-header=x-amz-meta-colour:red", bucket+"/put/moved").must(t)
	if out := do("info", bucket+"/put/moved").must(t); !strings.Contains(out, "x-amz-meta-colour: red") {
		t.Errorf("metadata that was changed: %q", out)
	}
	if out := do("ls", bucket+"/put/").must(t); !strings.Contains(out, bucket+"/put/c\n") || !strings.Contains(out, bucket+"/put/moved\n") ||
		strings.Contains(out, "copy") {
		t.Errorf("ls prints %q", out)
	}
	if out := do("ls", bucket).must(t); !strings.Contains(out, "DIR") || strings.Contains(out, "/put/c") {
		t.Errorf("ls of the bucket prints %q", out)
	}
	if out := do("du", bucket).must(t); !strings.Contains(out, "600000") {
		t.Errorf("du prints %q", out)
	}

	// A folder there and back; then without what was removed and with what was changed.
	do("sync", directory+"/", bucket+"/tree/").must(t)
	back := t.TempDir()
	do("sync", bucket+"/tree/", back+"/").must(t)
	sameTree(t, back, files)
	if err := os.Remove(filepath.Join(directory, "a")); err != nil {
		t.Fatal(err)
	}
	delete(files, "a")
	files["in/c"] = letters(11, 300_000)
	writeFile(t, filepath.Join(directory, "in/c"), files["in/c"])
	out = do("sync", "--delete-removed", directory+"/", bucket+"/tree/").must(t)
	if !strings.Contains(out, "in/c") || strings.Contains(out, "in/parts") {
		t.Errorf("the second sync does %q", out)
	}
	do("sync", "--delete-removed", bucket+"/tree/", back+"/").must(t)
	sameTree(t, back, files)

	if said := do("get", bucket+"/none", filepath.Join(t.TempDir(), "none")); said.code == 0 {
		t.Errorf("what was not put: %v", said)
	}
	if said := do("rb", bucket); said.code == 0 || !strings.Contains(said.messages, "BucketNotEmpty") {
		t.Errorf("a bucket with objects is removed: %v", said)
	}
	do("del", bucket+"/put/c").must(t)
	do("del", "--recursive", "--force", bucket+"/").must(t)
	do("rb", bucket).must(t)
}

// rcloneEnvironment has a remote "r" that is a gateway.
func rcloneEnvironment(endpoint, authority string, key accessKey) []string {
	return append(s3Environment(key), "RCLONE_CONFIG_R_TYPE=s3", "RCLONE_CONFIG_R_PROVIDER=Other", "RCLONE_CONFIG_R_ENDPOINT="+endpoint,
		"RCLONE_CONFIG_R_ACCESS_KEY_ID="+key.id, "RCLONE_CONFIG_R_SECRET_ACCESS_KEY="+key.secret, "RCLONE_S3_UPLOAD_CUTOFF=6Mi",
		"RCLONE_S3_CHUNK_SIZE=5Mi", "RCLONE_LOW_LEVEL_RETRIES=1", "RCLONE_RETRIES=1", "RCLONE_CA_CERT="+authority)
}

func (s *suite) rclone(t *testing.T) {
	environment := rcloneEnvironment("http://"+s.first.s3, "", anyKey)
	do := func(arguments ...string) answer {
		t.Helper()
		return program(t, "rclone", environment, arguments...)
	}
	directory := t.TempDir()
	files := tree(t, directory)
	const bucket = "r:rclone"
	do("mkdir", bucket).must(t)
	if out := do("lsf", "r:").must(t); !strings.Contains(out, "rclone/\n") {
		t.Errorf("the buckets are %q", out)
	}
	do("copyto", "--header-upload", "x-amz-meta-colour: blue", filepath.Join(directory, "in/c"), bucket+"/put/c").must(t)
	if out := do("cat", "--offset", "65530", "--count", "20", bucket+"/put/c").must(t); out != string(files["in/c"][65_530:65_550]) {
		t.Errorf("a range reads %q", out)
	}
	do("copyto", bucket+"/put/c", bucket+"/put/copy").must(t)
	do("moveto", bucket+"/put/copy", bucket+"/put/moved").must(t)
	var listed []struct {
		Path, Name string
		Size       int64
	}
	if err := json.Unmarshal([]byte(do("lsjson", "-R", "--files-only", bucket+"/put").must(t)), &listed); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(listed), "[{c c 300000} {moved moved 300000}]"; got != want {
		t.Errorf("it lists %s, want %s", got, want)
	}
	address := strings.TrimSpace(do("link", "--expire", "1m", bucket+"/put/moved").must(t))
	if status, text := ask(t, http.DefaultClient, http.MethodGet, address, nil); status != http.StatusOK || !bytes.Equal(text, files["in/c"]) {
		t.Errorf("what it signed reads as %d, %d bytes", status, len(text))
	}

	do("sync", directory, bucket+"/tree").must(t)
	do("check", directory, bucket+"/tree").must(t)
	do("check", "--download", directory, bucket+"/tree").must(t)
	if err := os.Remove(filepath.Join(directory, "a")); err != nil {
		t.Fatal(err)
	}
	delete(files, "a")
	files["in/c"] = letters(11, 300_000)
	writeFile(t, filepath.Join(directory, "in/c"), files["in/c"])
	if said := do("check", "--download", directory, bucket+"/tree"); said.code == 0 {
		t.Errorf("it finds no difference: %v", said)
	}
	do("sync", directory, bucket+"/tree").must(t)
	back := t.TempDir()
	do("sync", bucket+"/tree", back).must(t)
	sameTree(t, back, files)

	if said := do("rmdir", bucket); said.code == 0 {
		t.Errorf("a bucket with objects is removed: %v", said)
	}
	do("deletefile", bucket+"/put/c").must(t)
	do("purge", bucket).must(t)
	if out := do("lsf", "r:").must(t); strings.Contains(out, "rclone") {
		t.Errorf("after the bucket was removed there are %q", out)
	}
}

// lostAnswers: a client that lost the answer and asks again has done the same as one that asked once.
func (s *suite) lostAnswers(t *testing.T) {
	ctx := t.Context()
	b := balance(t, s.first.s3)
	c := newAWS("http://"+b.address, anyKey, &http.Transport{}, 3)
	const bucket = "lost-answers"
	data, other := letters(15, 20_000), letters(16, 20_000)
	lost := func(what, want string, do func() error) {
		t.Helper()
		b.lose.Store(1)
		if err := do(); code(err) != want {
			t.Errorf("%s: %q, want %q", what, code(err), want)
		}
		if b.lose.Load() > 0 {
			t.Errorf("%s: no answer was lost", what)
		}
	}
	put := func(data []byte, options s3Options) func() error {
		return func() error {
			_, err := c.put(ctx, bucket, "a", data, options)
			return err
		}
	}
	if err := c.makeBucket(ctx, bucket); err != nil {
		t.Fatal(err)
	}
	lost("put where there is nothing", "PreconditionFailed", put(data, s3Options{ifAbsent: true})) // it was itself
	if got, err := c.get(ctx, bucket, "a"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("after a put whose answer was lost it reads %d bytes, %v", len(got), err)
	}
	lost("put", "", put(other, s3Options{}))
	lost("copy", "", func() error { return c.copy(ctx, bucket, "a", "b", s3Options{}) })
	for _, key := range []string{"a", "b"} {
		if got, err := c.get(ctx, bucket, key); err != nil || !bytes.Equal(got, other) {
			t.Errorf("after writes whose answers were lost %s reads %d bytes, %v", key, len(got), err)
		}
	}
	lost("delete", "", func() error { return c.remove(ctx, bucket, "b") })

	upload, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: aws.String(bucket), Key: aws.String("parts")})
	if err != nil {
		t.Fatal(err)
	}
	var parts []types.CompletedPart
	large := letters(17, partSize+20_000)
	for number, piece := range [][]byte{large[:partSize], large[partSize:]} {
		in := &s3.UploadPartInput{
			Bucket: upload.Bucket, Key: upload.Key, UploadId: upload.UploadId, PartNumber: aws.Int32(int32(number + 1)),
			Body: bytes.NewReader(piece),
		}
		lost("a part", "", func() error {
			out, err := c.UploadPart(ctx, in)
			if err == nil {
				parts = append(parts, types.CompletedPart{ETag: out.ETag, PartNumber: in.PartNumber})
			}
			return err
		})
	}
	lost("completing an upload", "", func() error {
		_, err := c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: upload.Bucket, Key: upload.Key, UploadId: upload.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		})
		return err
	})
	if got, err := c.get(ctx, bucket, "parts"); err != nil || !bytes.Equal(got, large) {
		t.Errorf("what was uploaded in parts reads as %d bytes, %v", len(got), err)
	}
	if keys, _, err := c.list(ctx, 2, bucket, "", ""); err != nil || !slices.Equal(keys, []string{"a", "parts"}) {
		t.Errorf("in the end there are %q, %v", keys, err)
	}
}

// s3Names: what is stored under a name through one door is an object of the bucket that its name begins with.
func (s *suite) s3Names(t *testing.T) {
	ctx := t.Context()
	c := newAWS("http://"+s.second.s3, anyKey, http.DefaultTransport, 1)
	data := letters(12, 5_000)
	if err := (byHTTP{s.first.http}).put(ctx, "s3-names/photos/a", data); err != nil {
		t.Fatal(err)
	}
	if names, err := c.buckets(ctx); err != nil || !slices.Contains(names, "s3-names") {
		t.Errorf("the buckets are %q, %v", names, err)
	}
	keys, prefixes, err := c.list(ctx, 2, "s3-names", "", "/")
	if err != nil || len(keys) > 0 || !slices.Equal(prefixes, []string{"photos/"}) {
		t.Errorf("it lists %q %q, %v", keys, prefixes, err)
	}
	if got, err := c.get(ctx, "s3-names", "photos/a"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("it reads %d bytes, %v", len(got), err)
	}
	if _, err := c.put(ctx, "s3-names", "photos/b", data, s3Options{metadata: map[string]string{"colour": "blue"}}); err != nil {
		t.Fatal(err)
	}
	object, err := s.first.http.Stat(ctx, "s3-names/photos/b")
	if err != nil || object.Metadata["colour"] != "blue" {
		t.Errorf("over HTTP it is %+v, %v", object, err)
	}
}
