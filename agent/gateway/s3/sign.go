package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Signatures of requests, as "Authenticating Requests (AWS Signature Version 4)" of the Amazon S3 API Reference has them. For S3 the path
// is encoded once, and stays as it is otherwise.

const (
	algorithm  = "AWS4-HMAC-SHA256"
	timeLayout = "20060102T150405Z"
	dayLayout  = "20060102"
	// skew is how far the clock of a client may be from that of the gateway.
	skew = 15 * time.Minute
	// longestPresigned is for how long a URL may be signed ahead.
	longestPresigned = 7 * 24 * time.Hour
)

// What may stand in place of the digest of a body.
const (
	unsignedPayload        = "UNSIGNED-PAYLOAD"
	streamingSigned        = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	streamingSignedTrailer = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
	streamingTrailer       = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
)

// The parameters by which a URL is signed.
const (
	queryAlgorithm  = "X-Amz-Algorithm"
	queryCredential = "X-Amz-Credential"
	queryDate       = "X-Amz-Date"
	queryExpires    = "X-Amz-Expires"
	queryHeaders    = "X-Amz-SignedHeaders"
	querySignature  = "X-Amz-Signature"
	queryToken      = "X-Amz-Security-Token"
	queryPayload    = "X-Amz-Content-Sha256"
)

// headerPayload is the header that has the digest of the body.
const headerPayload = "X-Amz-Content-Sha256"

// authorization is what a request shows of the signature by which its sender is known.
type authorization struct {
	id, day, region string // of the access key, and for when and where the signature is
	signed          []string
	signature       string
	timestamp       string
	at              time.Time
	presigned       bool
	expires         time.Duration // of one that is presigned
	payload         string        // the digest of the body, or what stands in its place
}

var (
	oldSignature = invalidRequest.saying(
		"The authorization mechanism you have provided is not supported. Please use %s.", algorithm)
	otherSignature = invalidArgument.saying("Unsupported Authorization Type")
)

// readAuthorization returns what a request shows; nil where it shows nothing.
func readAuthorization(r *http.Request, query parameters) (*authorization, error) {
	if query.has(queryAlgorithm) || query.has(querySignature) {
		if r.Header.Get("Authorization") != "" {
			return nil, refuse(invalidArgument, "the request is signed by its header and by its query; sign it once")
		}
		return readPresigned(r, query)
	}
	if query.has("AWSAccessKeyId") && query.has("Signature") {
		return nil, refuse(oldSignature, "the URL is signed in the old way; sign it with %s", algorithm)
	}
	text := r.Header.Get("Authorization")
	if text == "" {
		return nil, nil
	}
	kind, rest, _ := strings.Cut(text, " ")
	switch {
	case kind == algorithm:
	case kind == "AWS" || strings.HasPrefix(kind, "AWS4-"):
		return nil, refuse(oldSignature, "the authorization is of the kind %.40q; sign requests with %s", kind, algorithm)
	default:
		return nil, refuse(otherSignature, "the authorization is of the kind %.40q; sign requests with %s", kind, algorithm)
	}
	a := &authorization{payload: r.Header.Get(headerPayload)}
	var credential, signed string
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			credential = value
		case "SignedHeaders":
			signed = value
		case "Signature":
			a.signature = value
		}
	}
	if credential == "" || signed == "" || a.signature == "" {
		return nil, refuse(authorizationHeader, "the Authorization header wants Credential, SignedHeaders and Signature")
	}
	if err := a.take(credential, signed, authorizationHeader); err != nil {
		return nil, err
	}
	if err := checkPayload(a.payload); err != nil {
		return nil, err
	}
	if a.payload == "" {
		return nil, refuse(invalidRequest, "the header x-amz-content-sha256 is missing, which a signed request has")
	}
	a.timestamp = r.Header.Get("X-Amz-Date")
	at, err := time.Parse(timeLayout, a.timestamp)
	if a.timestamp == "" {
		if at, err = http.ParseTime(r.Header.Get("Date")); err == nil {
			a.timestamp = at.UTC().Format(timeLayout)
		}
	}
	if err != nil {
		return nil, refuse(accessDenied, "the request has neither a header x-amz-date, such as 20060102T150405Z, nor a Date")
	}
	a.at = at
	return a, nil
}

func readPresigned(r *http.Request, query parameters) (*authorization, error) {
	for _, name := range []string{queryAlgorithm, queryCredential, queryDate, queryExpires, queryHeaders, querySignature} {
		if query.get(name) == "" {
			return nil, refuse(authorizationQuery, "a presigned URL has the parameter %s, which is missing", name)
		}
	}
	if kind := query.get(queryAlgorithm); kind != algorithm {
		return nil, refuse(authorizationQuery, "%s is %.40q; sign with %s", queryAlgorithm, kind, algorithm)
	}
	a := &authorization{
		signature: query.get(querySignature), timestamp: query.get(queryDate), presigned: true, payload: unsignedPayload,
	}
	for _, given := range []string{r.Header.Get(headerPayload), query.get(queryPayload)} {
		if given != "" {
			a.payload = given
			break
		}
	}
	if err := checkPayload(a.payload); err != nil {
		return nil, err
	}
	if err := a.take(query.get(queryCredential), query.get(queryHeaders), authorizationQuery); err != nil {
		return nil, err
	}
	var err error
	if a.at, err = time.Parse(timeLayout, a.timestamp); err != nil {
		return nil, refuse(authorizationQuery, "%s is %.40q; want a time such as 20060102T150405Z", queryDate, a.timestamp)
	}
	seconds, err := strconv.ParseInt(query.get(queryExpires), 10, 64)
	if err != nil || seconds < 0 || seconds > int64(longestPresigned/time.Second) {
		return nil, refuse(authorizationQuery, "%s is %.40q; want seconds, of a week at most", queryExpires, query.get(queryExpires))
	}
	a.expires = time.Duration(seconds) * time.Second
	return a, nil
}

// checkPayload refuses what is neither the digest of a body nor may stand in its place. It may be missing.
func checkPayload(payload string) error {
	switch payload {
	case "", unsignedPayload, streamingSigned, streamingSignedTrailer, streamingTrailer:
		return nil
	}
	if sum, err := hex.DecodeString(payload); err != nil || len(sum) != sha256.Size {
		return refuse(invalidArgument, "x-amz-content-sha256 is %.80q; want a SHA-256 in hexadecimal digits, %s, or one of %s, %s and %s",
			payload, unsignedPayload, streamingSigned, streamingSignedTrailer, streamingTrailer)
	}
	return nil
}

// take reads a credential (ID/DAY/REGION/s3/aws4_request) and the names of the signed headers.
func (a *authorization) take(credential, signed string, wrong code) error {
	parts := strings.Split(credential, "/")
	if len(parts) < 5 {
		return refuse(wrong, "the credential is %.80q; want ID/DAY/REGION/s3/aws4_request", credential)
	}
	scope := parts[len(parts)-4:] // an id may have slashes
	a.id = strings.Join(parts[:len(parts)-4], "/")
	a.day, a.region = scope[0], scope[1]
	if scope[2] != "s3" || scope[3] != "aws4_request" {
		return refuse(wrong, "the credential is for %.40q, %.40q; want s3, aws4_request", scope[2], scope[3])
	}
	a.signed = strings.Split(signed, ";")
	if _, err := time.Parse(dayLayout, a.day); err != nil {
		return refuse(wrong, "the credential is for %.20q; want a day, such as 20060102", a.day)
	}
	if !slices.Contains(a.signed, "host") {
		return refuse(wrong, "the header host has to be signed")
	}
	return nil
}

// check refuses a signature that is not for now.
func (a *authorization) check(now time.Time) error {
	if a.day != a.at.UTC().Format(dayLayout) {
		return refuse(signatureDoesNotMatch, "the credential is for %.20s, the request of %s", a.day, a.timestamp)
	}
	ahead := a.at.Sub(now)
	if a.presigned {
		switch {
		case ahead > skew:
			return refuse(accessDenied, "the signature is not valid yet: it is %s here, and it was signed at %s; set the clocks",
				now.UTC().Format(timeLayout), a.timestamp)
		case now.After(a.at.Add(a.expires)):
			return refuse(accessDenied, "Request has expired: it was valid until %s", a.at.Add(a.expires).UTC().Format(time.RFC3339))
		}
		return nil
	}
	if ahead > skew || ahead < -skew {
		return refuse(requestTimeTooSkewed, "the request is of %s, and it is %s here: they may be %s apart; set the clocks",
			a.timestamp, now.UTC().Format(timeLayout), skew)
	}
	return nil
}

// checkSigned refuses headers that say what is to be done and that no signature protects.
func (a *authorization) checkSigned(header http.Header) error {
	for name := range header {
		lower := strings.ToLower(name)
		if !strings.HasPrefix(lower, "x-amz-") || slices.Contains(a.signed, lower) {
			continue
		}
		if a.presigned && name == headerPayload {
			continue // it is part of what is signed
		}
		return refuse(accessDenied, "there were headers present in the request which were not signed: %.80s", lower)
	}
	return nil
}

// scope says for when and where a signature is.
func (a *authorization) scope() string { return a.day + "/" + a.region + "/s3/aws4_request" }

// key is what requests of that scope are signed with.
func (a *authorization) key(secret string) []byte {
	key := sign([]byte("AWS4"+secret), a.day)
	key = sign(key, a.region)
	key = sign(key, "s3")
	return sign(key, "aws4_request")
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// verify refuses a request that was not signed with a key. The path may be signed as it came, or encoded as S3 has it.
func (a *authorization) verify(r *http.Request, query parameters, path string, key []byte) error {
	paths := []string{encode(path, true)}
	if came := r.URL.EscapedPath(); came != paths[0] {
		paths = append(paths, came)
	}
	for _, path := range paths {
		canonical := a.canonical(r, path, query)
		if a.isSignedBy(key, algorithm+"\n"+a.timestamp+"\n"+a.scope()+"\n"+digestOf(canonical)) {
			return nil
		}
	}
	return refuse(signatureDoesNotMatch,
		"the signature is not that of the request and the secret of the access key %.40q; look at the secret, and whether something "+
			"on the way changes requests", a.id)
}

// isSignedBy compares in a time that does not depend on where a signature is wrong.
func (a *authorization) isSignedBy(key []byte, text string) bool {
	return hmac.Equal([]byte(hex.EncodeToString(sign(key, text))), []byte(a.signature))
}

// canonical is the text of a request that is signed.
func (a *authorization) canonical(r *http.Request, path string, query parameters) string {
	var text strings.Builder
	if path == "" {
		path = "/"
	}
	text.WriteString(r.Method + "\n" + path + "\n" + query.canonical(querySignature) + "\n")
	for _, name := range a.signed {
		text.WriteString(name + ":" + headerValue(r, name) + "\n")
	}
	text.WriteString("\n" + strings.Join(a.signed, ";") + "\n" + a.payload)
	return text.String()
}

// headerValue is the value of a header as it is signed.
func headerValue(r *http.Request, name string) string {
	switch name {
	case "host":
		return r.Host
	case "content-length":
		return strconv.FormatInt(max(r.ContentLength, 0), 10)
	case "transfer-encoding":
		return strings.Join(r.TransferEncoding, ",")
	}
	values := slices.Clone(r.Header[textproto.CanonicalMIMEHeaderKey(name)])
	for i := range values {
		values[i] = strings.Join(strings.FieldsFunc(values[i], func(c rune) bool { return c == ' ' }), " ")
	}
	return strings.Join(values, ",")
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
