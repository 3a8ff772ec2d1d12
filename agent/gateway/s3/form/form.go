package form

import (
	"errors"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net/url"
	"strings"
)

// What is wrong with a form.
var (
	ErrMalformed = errors.New("the form is not well-formed multipart/form-data")
	ErrTooLarge  = errors.New("the fields before the file are too large")
)

// FieldBytes is how much may come before the file, in all.
const FieldBytes = 20 << 10

// ahead is how much more a reader of parts may take from the body than it needs.
const ahead = 8 << 10

// Form is what came with a file.
type Form struct {
	fields   map[string]string // by their names in lower case
	FileName string            // without folders; may be empty
	File     io.Reader         // ends with the file; what follows in the form is of no account
}

// Get is the value of a field, by its name in lower case; empty where it is missing.
func (f *Form) Get(name string) string { return f.fields[name] }

// Has reports whether a field is there.
func (f *Form) Has(name string) bool {
	_, has := f.fields[name]
	return has
}

// Fields are all but the file, by their names in lower case. They are the form's own.
func (f *Form) Fields() map[string]string { return f.fields }

// Redirection is where the browser is to go once the object of a key is there; empty where the form says nothing, or nothing that is an
// address of a page.
func (f *Form) Redirection(bucket, key, tag string) string {
	text := f.Get("success_action_redirect")
	if text == "" {
		text = f.Get("redirect")
	}
	to, err := url.Parse(text)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return ""
	}
	query := url.Values{"bucket": {bucket}, "key": {key}, "etag": {tag}}.Encode()
	if to.RawQuery != "" {
		query = to.RawQuery + "&" + query
	}
	to.RawQuery = query
	return to.String()
}

// Read reads a form up to its file, which it has one of. In values "${filename}" stands for the name of the file.
func Read(body io.Reader, boundary string) (*Form, error) {
	bounded := &bounded{from: body, left: FieldBytes + ahead}
	parts := multipart.NewReader(bounded, boundary)
	form := &Form{fields: map[string]string{}}
	for bytes := 0; ; {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%w: it has no file, which is the field named file, behind the others", ErrMalformed)
		}
		if err != nil {
			return nil, wrong(err)
		}
		name := strings.ToLower(part.FormName())
		if name == "file" {
			bounded.left = math.MaxInt64
			form.FileName, form.File = part.FileName(), part
			return form, form.expand(bytes)
		}
		value, err := io.ReadAll(io.LimitReader(part, FieldBytes+1))
		if err != nil {
			return nil, wrong(err)
		}
		if bytes += len(name) + len(value); bytes > FieldBytes {
			return nil, fmt.Errorf("%w: they have %d bytes at most", ErrTooLarge, FieldBytes)
		}
		if name == "" || form.Has(name) {
			return nil, fmt.Errorf("%w: the field %.40q is there twice, or has no name", ErrMalformed, name)
		}
		form.fields[name] = string(value)
	}
}

// expand puts the name of the file where it is wanted in fields of so many bytes, which have no more then than fields may have.
func (f *Form) expand(bytes int) error {
	const variable = "${filename}"
	for _, value := range f.fields {
		bytes += strings.Count(value, variable) * max(0, len(f.FileName)-len(variable))
	}
	if bytes > FieldBytes {
		return fmt.Errorf("%w: with the name of the file they have more than %d bytes", ErrTooLarge, FieldBytes)
	}
	for name, value := range f.fields {
		f.fields[name] = strings.ReplaceAll(value, variable, f.FileName)
	}
	return nil
}

// wrong is an error of reading a form: of the form, unless it is one of the connection.
func wrong(err error) error {
	var read *readError
	if errors.Is(err, ErrTooLarge) || errors.As(err, &read) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}

// bounded refuses to read on after so many bytes.
type bounded struct {
	from io.Reader
	left int64
}

// readError is one of what a form comes from.
type readError struct{ error }

// Unwrap implements the errors package's.
func (e *readError) Unwrap() error { return e.error }

// Read reads from what the form comes from.
func (b *bounded) Read(into []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: they have %d bytes at most", ErrTooLarge, FieldBytes)
	}
	n, err := b.from.Read(into[:min(int64(len(into)), b.left)])
	b.left -= int64(n)
	if err != nil && err != io.EOF { //nolint:errorlint // only the bare value is the end; an error that wraps it is a failure
		err = &readError{err}
	}
	return n, err
}
