package form

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// write makes a form of fields in pairs and a file.
func write(t testing.TB, file string, fields ...string) (body []byte, boundary string) {
	t.Helper()
	var into bytes.Buffer
	w := multipart.NewWriter(&into)
	for i := 0; i < len(fields); i += 2 {
		if err := w.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	part, err := w.CreateFormFile("file", "a b.jpg")
	if err == nil {
		_, err = io.WriteString(part, file)
	}
	if err == nil {
		err = w.WriteField("behind", "ignored")
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return into.Bytes(), w.Boundary()
}

// A form has its fields, by names in any case, and a file of any size, which what follows is no part of.
func TestRead(t *testing.T) {
	file := strings.Repeat("0123456789", 30_000)
	body, boundary := write(t, file, "Key", "photos/${filename}", "x-amz-meta-a", "ä", "empty", "")
	form, err := Read(iotest.HalfReader(bytes.NewReader(body)), boundary)
	if err != nil {
		t.Fatal(err)
	}
	if form.Get("key") != "photos/a b.jpg" || form.Get("x-amz-meta-a") != "ä" || !form.Has("empty") || form.Has("behind") ||
		len(form.Fields()) != 3 {
		t.Errorf("%q", form.Fields())
	}
	if got, err := io.ReadAll(form.File); err != nil || string(got) != file {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	cut, err := Read(bytes.NewReader(body[:len(body)/2]), boundary)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(cut.File); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("of a form that breaks off there are %d bytes, %v", len(got), err)
	}
}

// What is no form is told from what is too large, and from a connection that breaks.
func TestReadOfWhatIsNone(t *testing.T) {
	broken := errors.New("gone")
	body, boundary := write(t, "x", "a", strings.Repeat("x", FieldBytes+1))
	if _, err := Read(bytes.NewReader(body), boundary); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a field that is too large: %v", err)
	}
	var fields []string
	for i := range 1000 {
		fields = append(fields, fmt.Sprint("field", i), "some text")
	}
	body, boundary = write(t, "x", fields...)
	if _, err := Read(bytes.NewReader(body), boundary); !errors.Is(err, ErrTooLarge) {
		t.Errorf("many fields: %v", err)
	}
	body, boundary = write(t, "x", "a", strings.Repeat("${filename}", FieldBytes/11))
	body = bytes.Replace(body, []byte("a b.jpg"), []byte(strings.Repeat("long", 1000)), 1)
	if _, err := Read(bytes.NewReader(body), boundary); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a name that is put in often: %v", err)
	}
	body, boundary = write(t, "x", "a", "1", "A", "2")
	if _, err := Read(bytes.NewReader(body), boundary); !errors.Is(err, ErrMalformed) {
		t.Errorf("a field that is there twice: %v", err)
	}
	body, boundary = write(t, "x", "a", "1")
	if _, err := Read(bytes.NewReader(body), "another"); !errors.Is(err, ErrMalformed) {
		t.Errorf("another boundary: %v", err)
	}
	at := bytes.Index(body, []byte(`name="file"`))
	if _, err := Read(bytes.NewReader(body[:at]), boundary); !errors.Is(err, ErrMalformed) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Read(io.MultiReader(bytes.NewReader(body[:at]), iotest.ErrReader(broken)), boundary); !errors.Is(err, broken) ||
		errors.Is(err, ErrMalformed) {
		t.Errorf("a connection that breaks: %v", err)
	}
}

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func policy(conditions string) string {
	return base64.StdEncoding.EncodeToString([]byte(`{"expiration": "2030-01-02T03:05:00.000Z", "conditions": [` + conditions + `]}`))
}

// A form is allowed where each condition holds and each field has one; the bucket has to have one as well.
func TestCheck(t *testing.T) {
	const all = `{"bucket": "photos"}, ["starts-with", "$key", ""]`
	for _, test := range []struct {
		conditions string
		fields     map[string]string
		want       string // of the error; empty: it is allowed
	}{
		{all, map[string]string{"key": "a", "policy": "x", "x-amz-signature": "x", "x-ignore-a": "x"}, ""},
		{all, map[string]string{"key": "a", "acl": "private"}, "Extra input fields: acl"},
		{`{"key": "a"}`, map[string]string{"key": "a"}, "Extra input fields: bucket"},
		{`{"bucket": "others"}, {"key": "a"}`, map[string]string{"key": "a", "bucket": "others"},
			`Policy Condition failed: ["eq","$bucket","others"]`},
		{`{"bucket": "photos"}, {"KEY": "a"}`, map[string]string{"key": "a"}, ""},
		{all + `, ["eq", "$Content-Type", "text/x"]`, map[string]string{"key": "a", "content-type": "text/y"},
			`Policy Condition failed: ["eq","$Content-Type","text/x"]`},
		{all + `, ["starts-with", "$content-type", "text/"]`, map[string]string{"key": "a", "content-type": "text/x, text/y"}, ""},
		{all + `, ["starts-with", "$content-type", "text/"]`, map[string]string{"key": "a", "content-type": "text/x, image/y"}, "failed"},
		{all + `, ["starts-with", "$x-amz-meta-a", "b"]`, map[string]string{"key": "a", "x-amz-meta-a": "a"}, "failed"},
		{all + `, ["starts-with", "$x-amz-meta-a", "b"]`, map[string]string{"key": "a"}, "failed"},
		{all + `, ["starts-with", "$x-amz-meta-a", ""]`, map[string]string{"key": "a"}, ""},
		{all + `, ["eq", "acl", "x"]`, map[string]string{"key": "a", "acl": "x"}, `failed: ["eq","acl","x"]`},
		{all + `, ["content-length-range", 1, "10"]`, map[string]string{"key": "a"}, ""},
	} {
		parsed, err := ParsePolicy(policy(test.conditions))
		if err != nil {
			t.Errorf("%s: %v", test.conditions, err)
			continue
		}
		err = parsed.Check(test.fields, "photos", now)
		if test.want == "" && err != nil ||
			test.want != "" && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s with %q: %v, want %q", test.conditions, test.fields, err, test.want)
		}
	}
	parsed, err := ParsePolicy(policy(all + `, ["content-length-range", 1, 10], ["content-length-range", 0, 8]`))
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]error{"": ErrFileTooSmall, "1": nil, "12345678": nil, "123456789": ErrFileTooLarge} {
		got, err := io.ReadAll(parsed.Bound(iotest.DataErrReader(strings.NewReader(file))))
		if !errors.Is(err, want) || err == nil && string(got) != file {
			t.Errorf("of %q there is %q, %v; want %v", file, got, err, want)
		}
	}
	if err := parsed.Check(map[string]string{"key": "a"}, "photos", now.Add(time.Minute)); !errors.Is(err, ErrRefused) {
		t.Errorf("a policy that has expired: %v", err)
	}
}

// What is no policy is refused as none, and not taken for one that allows something.
func TestParseOfWhatIsNone(t *testing.T) {
	encode := base64.StdEncoding.EncodeToString
	for _, text := range []string{
		"", "?", encode([]byte("x")), encode([]byte("[]")), encode([]byte("null")), encode([]byte(`{"expiration": "2030-01-02T03:05:00Z"}`)),
		encode([]byte(`{"conditions": []}`)), encode([]byte(`{"expiration": 1, "conditions": []}`)),
		encode([]byte(`{"expiration": "x", "conditions": []}`)),
		encode([]byte(`{"expiration": "2030-01-02T03:05:00Z", "conditions": null}`)),
		encode([]byte(`{"expiration": "2030-01-02T03:05:00Z", "conditions": [], "more": 1}`)),
		policy("null"), policy("1"), policy("[]"), policy("{}"), policy(`{"a": "b", "c": "d"}`), policy(`{"a": 1}`), policy(`["eq"]`),
		policy(`["is", "$a", "b"]`), policy(`["eq", "$a"]`), policy(`["eq", 1, "b"]`), policy(`["eq", "$a", null]`),
		policy(`["content-length-range", 2, 1]`), policy(`["content-length-range", -1, 1]`), policy(`["content-length-range", 0, 1.5]`),
		policy(`["content-length-range", 0, null]`),
	} {
		if parsed, err := ParsePolicy(text); !errors.Is(err, ErrPolicy) {
			t.Errorf("%q: %+v, %v", text, parsed, err)
		}
	}
}

// No policy allows a field that it does not name, or a bucket.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte(`{"expiration": "2030-01-02T03:05:00Z", "conditions": [{"bucket": "photos"}, ["starts-with", "$key", ""]]}`), "key", "a")
	f.Fuzz(func(t *testing.T, text []byte, name, value string) {
		parsed, err := ParsePolicy(base64.StdEncoding.EncodeToString(text))
		if err != nil {
			if !errors.Is(err, ErrPolicy) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if parsed.least < 0 || parsed.most < 0 {
			t.Fatalf("%q allows %d to %d bytes", text, parsed.least, parsed.most)
		}
		name = strings.ToLower(name)
		err = parsed.Check(map[string]string{name: value}, "photos", now)
		if err == nil && !strings.Contains(strings.ToLower(string(text)), "bucket") && !bytes.Contains(text, []byte(`\`)) {
			t.Fatalf("%q allows any bucket", text)
		}
	})
}

// Whatever a form is, no more of it is kept than its fields may have.
func FuzzForm(f *testing.F) {
	body, boundary := write(f, "file", "key", "a/${filename}")
	f.Add(body, boundary)
	f.Add([]byte("--b\r\n\r\n--b--"), "b")
	f.Fuzz(func(t *testing.T, body []byte, boundary string) {
		form, err := Read(bytes.NewReader(body), boundary)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooLarge) {
				t.Fatal(err)
			}
			return
		}
		bytes := 0
		for name, value := range form.Fields() {
			if name == "file" || name == "" {
				t.Fatalf("there is a field %q", name)
			}
			bytes += len(name) + len(value)
		}
		if bytes > FieldBytes {
			t.Fatalf("the fields have %d bytes", bytes)
		}
		if n, err := io.Copy(io.Discard, form.File); n > int64(len(body)) || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Logf("%d bytes, %v", n, err)
		}
	})
}
