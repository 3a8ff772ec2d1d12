package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/gateway/s3/form"
	"github.com/restripe/restripe/agent/gateway/s3/message"
	"github.com/restripe/restripe/agent/serve"
)

var (
	malformedForm = code{
		"MalformedPOSTRequest", http.StatusBadRequest, "The body of your POST request is not well-formed multipart/form-data.",
	}
	formTooLarge     = code{"MaxPostPreDataLengthExceeded", http.StatusBadRequest, ""}
	invalidPolicy    = code{"InvalidPolicyDocument", http.StatusBadRequest, ""}
	fileTooLarge     = entityTooLarge.saying("Your proposed upload exceeds the maximum allowed size")
	fileTooSmall     = entityTooSmall.saying("Your proposed upload is smaller than the minimum allowed size")
	formsAlone       = preconditionFailed.saying("At least one of the pre-conditions you specified did not hold")
	signatureOfForms = []string{"policy", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature"}
)

// posted is a form by which an object is put.
type posted struct {
	*form.Form
	policy *form.Policy // nil: it came without one, where nobody is asked who they are
}

// isForm reports whether a request is one to a bucket that can only be a form.
func isForm(q *request) bool {
	return q.Method == http.MethodPost && q.bucket != "" && q.key == "" && len(q.query) == 0 && q.Header.Get("Authorization") == ""
}

// readForm reads a form up to its file, and learns from its signature who sends it. What the form says counts as said by the request, and
// nothing else does: the policy, which is what was signed, is of the form alone.
func readForm(q *request) error {
	kind, parameters, err := mime.ParseMediaType(q.Header.Get("Content-Type"))
	switch {
	case kind != "multipart/form-data":
		return refuse(formsAlone, "Bucket POST must be of the enclosure-type multipart/form-data")
	case err != nil || parameters["boundary"] == "":
		return refuse(malformedForm, "the content type has no boundary: %.80q", q.Header.Get("Content-Type"))
	case q.Header.Get("X-Amz-Content-Sha256") != "" || q.Header.Get("Content-Encoding") != "":
		return refuse(invalidRequest, "a form comes as it is: without x-amz-content-sha256 and Content-Encoding")
	}
	if err := q.hold(q.Context(), formBytes); err != nil {
		return err
	}
	came, err := form.Read(serve.PatientBody(q.w, q.Request, errSlow), parameters["boundary"])
	if err != nil {
		return ofForm(err)
	}
	q.form = &posted{Form: came}
	if q.server.options.Users == nil {
		q.caller = caller{user: anybody}
	} else if err := q.form.identify(q); err != nil {
		return err
	}
	if q.form.Has("policy") {
		if q.form.policy, err = form.ParsePolicy(q.form.Get("policy")); err != nil {
			return ofForm(err)
		}
		if err := q.form.policy.Check(q.form.Fields(), q.bucket, time.Now()); err != nil {
			return ofForm(err)
		}
	}
	if q.key = q.form.Get("key"); q.key == "" {
		return noField("key")
	}
	return q.form.take(q)
}

// ofForm has what is wrong with a form be one of S3's errors.
func ofForm(err error) error {
	for _, meaning := range []struct {
		of error
		is code
	}{
		{form.ErrMalformed, malformedForm}, {form.ErrTooLarge, formTooLarge}, {form.ErrPolicy, invalidPolicy},
		{form.ErrRefused, accessDenied}, {form.ErrFileTooLarge, fileTooLarge}, {form.ErrFileTooSmall, fileTooSmall},
	} {
		if errors.Is(err, meaning.of) {
			return &refusal{meaning.is, err}
		}
	}
	return err
}

// formBytes is the memory that the fields of a form have, about.
const formBytes = 4 * form.FieldBytes

func noField(name string) error {
	return refuse(invalidArgument.saying(
		"Bucket POST must contain a field named '%s'.  If it is specified, please check the order of the fields.", name),
		"the field %s is missing, or is empty", name)
}

// identify learns who signed the policy of a form.
func (p *posted) identify(q *request) error {
	missing, some := "", false
	for _, name := range signatureOfForms {
		if p.Get(name) == "" && !(name == "policy" && p.Has(name)) {
			missing = name
		} else {
			some = true
		}
	}
	switch kind := p.Get("x-amz-algorithm"); {
	case !some:
		return refuse(accessDenied, "the form is not signed; this server asks who sends it: sign a policy with an access key")
	case missing != "":
		return noField(missing)
	case p.Has("x-amz-security-token"):
		return refuse(invalidToken, "the form has a session token, and there are none here; use the access key alone")
	case kind != algorithm:
		return refuse(invalidArgument.saying("Only %s is supported", algorithm), "x-amz-algorithm is %.40q", kind)
	}
	by := &authorization{signature: p.Get("x-amz-signature"), timestamp: p.Get("x-amz-date"), payload: unsignedPayload}
	at, err := time.Parse(timeLayout, by.timestamp)
	if err != nil {
		return refuse(invalidArgument, "x-amz-date is %.40q; want a time such as 20060102T150405Z", by.timestamp)
	}
	if err := by.take(p.Get("x-amz-credential"), "host", invalidArgument); err != nil { // what is signed is the policy, and no header
		return err
	}
	by.at, by.presigned, by.expires = at, true, longestPresigned // it is signed ahead, as URLs are
	return q.signedBy(by, func(key []byte) error {
		if !by.isSignedBy(key, p.Get("policy")) {
			return refuse(signatureDoesNotMatch, "the signature is not that of the policy and the secret of the access key %.40q", by.id)
		}
		return nil
	})
}

// take has the headers of the request be what the form says.
func (p *posted) take(q *request) error {
	header := http.Header{}
	if owner := q.Header.Get("X-Amz-Expected-Bucket-Owner"); owner != "" {
		header.Set("X-Amz-Expected-Bucket-Owner", owner)
	}
	for name, value := range p.Fields() {
		if !isFieldValue(value) && strings.HasPrefix(name, "x-amz-") {
			return refuse(invalidArgument, "the field %.80q has bytes that no header has", name)
		}
		switch {
		case name == "acl":
			header.Set("X-Amz-Acl", value)
		case name == "tagging":
			var asked tagging
			if err := xml.Unmarshal([]byte(value), &asked); err != nil {
				return refuse(malformedXML, "the field tagging is not the XML that it should be: %w", err)
			}
			tags, err := asked.encode()
			if err != nil {
				return err
			}
			header.Set("X-Amz-Tagging", tags)
		case strings.HasPrefix(name, "x-amz-") || name == "content-md5" || isKept(name):
			header.Set(name, value)
		}
	}
	for _, name := range signatureOfForms {
		header.Del(name)
	}
	q.Header = header
	return nil
}

// isKept reports whether a header is kept with an object.
func isKept(name string) bool {
	for _, one := range kept {
		if strings.EqualFold(one, name) {
			return true
		}
	}
	return false
}

// file is the body of a form: it ends with the file, and is as large as the policy allows.
func (p *posted) file() io.Reader {
	if p.policy == nil {
		return p.File
	}
	return p.policy.Bound(p.File)
}

// postObject puts the file of a form.
func postObject(ctx context.Context, q *request) error {
	if q.form == nil {
		return refuse(methodNotAllowed, "a bucket takes a POST of a form, which is signed by its own fields")
	}
	options, err := q.server.mayPut(ctx, q)
	if err != nil {
		return err
	}
	if options.Metadata, err = metadataOf(q.Header); err != nil {
		return err
	}
	body := bodyOf(q.form.file(), unknownSize, nil)
	if err := body.expect(q.Header); err != nil {
		return err
	}
	options.Size, options.Digests = body.size, body.digests
	stored, err := q.server.options.Objects.Put(ctx, q.object(), body, options)
	if err != nil {
		return ofForm(err)
	}
	q.setSums(body)
	setVersion(q, q.server.version(&stored))
	tag := strconv.Quote(body.etag())
	if to := q.form.Redirection(q.bucket, q.key, tag); to != "" {
		q.w.Header().Set("Location", to)
		return q.done(http.StatusSeeOther)
	}
	q.w.Header().Set("Location", locationOf(q))
	switch q.form.Get("success_action_status") {
	case "200":
		return q.done(http.StatusOK)
	case "201":
		return q.replyWith(http.StatusCreated, &message.PostResult{Location: locationOf(q), Bucket: q.bucket, Key: q.key, ETag: tag})
	}
	return q.done(http.StatusNoContent)
}
