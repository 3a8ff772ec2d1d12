package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/budget"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/serve"
)

// request is one of a client.
type request struct {
	*http.Request
	target
	server *Server
	w      *serve.Answer
	query  parameters
	caller caller
	id     string
	form   *posted  // nil: it is none
	frees  []func() // that give back what it holds
}

// admission is how long a request waits for memory before it is refused.
const admission = 5 * time.Second

// hold takes memory for what a request is answered with, until it ends.
func (q *request) hold(ctx context.Context, bytes int64) error {
	held := q.server.memory.Hold(admission)
	q.frees = append(q.frees, held.Release)
	err := held.Grow(ctx, bytes, 0)
	if errors.Is(err, budget.ErrFull) {
		err = api.Refuse(api.ErrBusy, "%w", err)
	}
	return err
}

// free gives back what the request holds.
func (q *request) free() {
	for _, free := range q.frees {
		free()
	}
}

// caller is who sends a request, and what it was signed with.
type caller struct {
	user *access.User
	by   *authorization // nil: it is not signed, or nobody looked
	key  []byte
}

// anybody is who sends requests where nobody is asked who they are.
var anybody = access.NewUser("anybody", access.ByNobody, nil, access.Grant{May: []access.Verb{access.Admin}})

// payload is the digest of the body, or what stands in its place.
func (q *request) payload() string {
	if q.caller.by != nil {
		return q.caller.by.payload
	}
	return q.Header.Get(headerPayload)
}

// identify learns who sends a request.
func (q *request) identify() error {
	s := q.server
	if isForm(q) {
		return readForm(q)
	}
	if s.options.Users == nil {
		q.caller = caller{user: anybody}
		return nil
	}
	by, err := readAuthorization(q.Request, q.query)
	switch {
	case err != nil:
		return err
	case by == nil:
		return refuse(accessDenied, "the request is not signed; this server asks who sends it: sign it with an access key")
	case q.Header.Get("X-Amz-Security-Token") != "" || q.query.has(queryToken):
		return refuse(invalidToken, "the request has a session token, and there are none here; use the access key alone")
	}
	err = q.signedBy(by, func(key []byte) error {
		if err := by.verify(q.Request, q.query, q.URL.Path, key); err != nil {
			return err
		}
		return by.checkSigned(q.Header)
	})
	if err == nil && by.presigned {
		q.takeParameters()
	}
	return err
}

// signedBy has the request be of the user of an access key, whose signature is verified.
func (q *request) signedBy(by *authorization, verify func(key []byte) error) error {
	keys, knows := q.server.options.Users.(access.Keys)
	if !knows {
		return refuse(accessDenied, "the users of this server have no access keys, so that nobody can sign requests")
	}
	user, secret, err := keys.Key(q.Context(), by.id)
	if errors.Is(err, access.ErrUnknown) {
		return &refusal{invalidAccessKey, err}
	}
	if err != nil {
		return api.Refuse(api.ErrUnavailable, "%w", err)
	}
	if err := by.check(time.Now()); err != nil {
		return err
	}
	key := by.key(secret)
	if err := verify(key); err != nil {
		return err
	}
	q.caller = caller{user, by, key}
	return nil
}

// takeParameters has what a presigned URL says in its parameters count as said in headers.
func (q *request) takeParameters() {
	for _, one := range q.query {
		switch name := http.CanonicalHeaderKey(one.name); name {
		case queryAlgorithm, queryCredential, queryDate, queryExpires, http.CanonicalHeaderKey(queryHeaders), querySignature,
			queryPayload:
		default:
			if isAmazon(name) && q.Header.Get(name) == "" {
				q.Header.Set(name, one.value)
			}
		}
	}
}

func isAmazon(header string) bool { return len(header) > 6 && header[:6] == "X-Amz-" }

// may refuses a verb on the object of a key, where the object there is, or would be, of one of these classes.
func (q *request) may(ctx context.Context, verb access.Verb, key string, into ...string) error {
	lacking, err := q.caller.user.Lacks(verb, key, func() ([]string, error) {
		there, err := q.server.options.Objects.Find(ctx, key)
		if err != nil || there == nil {
			return into, err
		}
		return append(into, there.Class), nil
	})
	if lacking != "" {
		return q.lacks("%s", lacking)
	}
	return err
}

func (q *request) lacks(format string, args ...any) error {
	return refuse(accessDenied, "%s may not do this: %s; who looks after this gateway can grant it",
		q.caller.user.Name, fmt.Sprintf(format, args...))
}

// meets refuses what is of a bucket as a whole to those who may do nothing with any object that it could have.
func (q *request) meets() error {
	for _, verb := range access.ObjectVerbs() {
		if q.caller.user.Scope(verb).Meets(q.bucket + "/") {
			return nil
		}
	}
	return q.lacks("there is no right on objects of bucket %s", q.bucket)
}

// inBucket refuses a request for a bucket that is not there.
func (q *request) inBucket(ctx context.Context, bucket string) error {
	there, err := object.Records(ctx, q.server.options.Objects, bucket+"/", "", 1)
	if err == nil && len(there) == 0 {
		err = noBucket(bucket)
	}
	return err
}

func noBucket(bucket string) error {
	return refuse(noSuchBucket, "there is no bucket %s: no object has a key that begins with %s/", bucket, bucket)
}

// reply answers a value in XML.
func (q *request) reply(value any) error { return q.replyWith(http.StatusOK, value) }

func (q *request) replyWith(status int, value any) error {
	text, err := xml.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding an answer: %w", err)
	}
	return q.send(status, text)
}

func (q *request) send(status int, text []byte) error {
	q.w.Header().Set("Content-Type", "application/xml")
	q.w.WriteHeader(status)
	_, err := q.w.Write(append([]byte(xml.Header), text...))
	return err
}

// done answers with nothing.
func (q *request) done(status int) error {
	q.w.WriteHeader(status)
	return nil
}

// readXML reads a body in XML, which has the digests of a header.
func (q *request) readXML(into any, digests http.Header) error {
	text, err := q.readAll(digests)
	if err != nil {
		return err
	}
	if err := xml.Unmarshal(text, into); err != nil {
		return refuse(malformedXML, "the body is not the XML that it should be: %w", err)
	}
	return nil
}
