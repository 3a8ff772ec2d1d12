package s3

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// The examples of the Amazon S3 API Reference, "Signature Calculations for the Authorization Header" and "Authenticating Requests: Using
// Query Parameters".
const (
	exampleID     = "AKIAIOSFODNN7EXAMPLE"
	exampleSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	exampleHost   = "examplebucket.s3.amazonaws.com"
	exampleScope  = exampleID + "/20130524/us-east-1/s3/aws4_request"
)

var exampleTime = time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)

// exampleRequest is a request to the host of the examples.
func exampleRequest(method, target string, header map[string]string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.Host = exampleHost
	for name, value := range header {
		r.Header.Set(name, value)
	}
	return r
}

// isSigned reports whether a request is signed with a secret.
func isSigned(t *testing.T, r *http.Request, secret string) bool {
	t.Helper()
	query, err := readQuery(r.URL.RawQuery)
	if err != nil {
		t.Fatal(err)
	}
	a, err := readAuthorization(r, query)
	if err != nil {
		t.Fatal(err)
	}
	err = a.verify(r, query, r.URL.Path, a.key(secret))
	if err != nil && codeOf(err) != signatureDoesNotMatch {
		t.Fatal(err)
	}
	return err == nil
}

func TestSignaturesOfTheReference(t *testing.T) {
	for _, test := range []struct {
		name, method, target, signed, signature string
		header                                  map[string]string
	}{
		{
			"get", "GET", "/test.txt", "host;range;x-amz-content-sha256;x-amz-date",
			"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
			map[string]string{"Range": "bytes=0-9", headerPayload: emptyDigest},
		},
		{
			"put", "PUT", "/test$file.text", "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
			"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
			map[string]string{
				"Date": "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY",
				headerPayload: "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
			},
		},
		{
			"lifecycle", "GET", "/?lifecycle", "host;x-amz-content-sha256;x-amz-date",
			"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543", map[string]string{headerPayload: emptyDigest},
		},
		{
			"list", "GET", "/?max-keys=2&prefix=J", "host;x-amz-content-sha256;x-amz-date",
			"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7", map[string]string{headerPayload: emptyDigest},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := exampleRequest(test.method, test.target, test.header)
			r.Header.Set("X-Amz-Date", "20130524T000000Z")
			r.Header.Set("Authorization",
				algorithm+" Credential="+exampleScope+",SignedHeaders="+test.signed+", Signature="+test.signature)
			if !isSigned(t, r, exampleSecret) {
				t.Error("the signature of the reference is refused")
			}
			if isSigned(t, r, exampleSecret+"x") {
				t.Error("a signature with another secret is taken")
			}
			for _, change := range []func(r *http.Request){
				func(r *http.Request) { r.Method = "DELETE" },
				func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/test2.txt", "" },
				func(r *http.Request) { r.URL.RawQuery = "acl" },
				func(r *http.Request) { r.Host = "another.example.org" },
				func(r *http.Request) { r.Header.Set(headerPayload, digestOf("x")) },
				func(r *http.Request) { r.Header.Set("X-Amz-Date", "20130524T000001Z") },
			} {
				changed := r.Clone(t.Context())
				if change(changed); isSigned(t, changed, exampleSecret) {
					t.Errorf("a request that was changed is taken: %s %s, %v", changed.Method, changed.URL, changed.Header)
				}
			}
		})
	}
	r := exampleRequest("GET", "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential="+url.QueryEscape(exampleScope)+
		"&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"+
		"&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404", nil)
	if !isSigned(t, r, exampleSecret) {
		t.Error("the presigned URL of the reference is refused")
	}
	a, err := readAuthorization(r, mustQuery(t, r.URL.RawQuery))
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]code{
		-skew: {}, 0: {}, 24 * time.Hour: {}, -skew - time.Second: accessDenied, 24*time.Hour + time.Second: accessDenied,
	} {
		if err := a.check(exampleTime.Add(after)); err == nil != (want == code{}) || err != nil && codeOf(err) != want {
			t.Errorf("%s after it was signed: %v", after, err)
		}
	}
}

func mustQuery(t *testing.T, raw string) parameters {
	t.Helper()
	query, err := readQuery(raw)
	if err != nil {
		t.Fatal(err)
	}
	return query
}

// A request is for now, give or take what clocks are apart.
func TestClocks(t *testing.T) {
	a := &authorization{day: "20130524", timestamp: "20130524T000000Z", at: exampleTime}
	for after, want := range map[time.Duration]error{
		skew: nil, -skew: nil, skew + time.Second: errors.New(requestTimeTooSkewed.name),
		-skew - time.Second: errors.New(requestTimeTooSkewed.name),
	} {
		if err := a.check(exampleTime.Add(after)); (err == nil) != (want == nil) || err != nil && codeOf(err) != requestTimeTooSkewed {
			t.Errorf("%s later: %v, want %v", after, err, want)
		}
	}
	a.day = "20130523"
	if err := a.check(exampleTime); codeOf(err) != signatureDoesNotMatch {
		t.Errorf("a credential of another day: %v", err)
	}
}

func TestWhatIsNoAuthorization(t *testing.T) {
	const tail = ", SignedHeaders=host, Signature=x"
	for text, want := range map[string]code{
		"AWS A:B": oldSignature, "Bearer x": otherSignature, algorithm: authorizationHeader, algorithm +
			" Credential=a": authorizationHeader,
		algorithm + " Credential=a/b" + tail:                                                      authorizationHeader,
		algorithm + " Credential=a/20130524/r/ec2/aws4_request" + tail:                            authorizationHeader,
		algorithm + " Credential=a/20130524/r/s3/aws" + tail:                                      authorizationHeader,
		algorithm + " Credential=a/2013/r/s3/aws4_request" + tail:                                 authorizationHeader,
		algorithm + " Credential=a/20130524/r/s3/aws4_request, SignedHeaders=date, Signature=x":   authorizationHeader,
		algorithm + " Credential=a/20130524/r/s3/aws4_request" + tail:                             invalidRequest, // no digest
		"AWS4-ECDSA-P256-SHA256 Credential=a/20130524/r/s3/aws4_request" + tail:                   oldSignature,
		algorithm + " Credential=a/b/20130524/r/s3/aws4_request,SignedHeaders=host,Signature=x,x": invalidRequest,
	} {
		if _, err := readAuthorization(exampleRequest("GET", "/", map[string]string{"Authorization": text}), nil); codeOf(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want.name)
		}
	}
	r := exampleRequest("GET", "/", map[string]string{
		"Authorization": algorithm + " Credential=a/b/20130524/r/s3/aws4_request" + tail, headerPayload: unsignedPayload,
		"Date": exampleTime.Format(http.TimeFormat),
	})
	a, err := readAuthorization(r, nil)
	if err != nil || a.id != "a/b" || a.timestamp != "20130524T000000Z" {
		t.Errorf("%+v, %v", a, err)
	}
	for _, query := range []string{
		"X-Amz-Algorithm=" + algorithm, "X-Amz-Signature=x",
		"X-Amz-Algorithm=x&X-Amz-Credential=a&X-Amz-Date=b&X-Amz-Expires=1&X-Amz-SignedHeaders=host&X-Amz-Signature=x",
		"X-Amz-Algorithm=" + algorithm +
			"&X-Amz-Credential=a/20130524/r/s3/aws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=604801&" +
			"X-Amz-SignedHeaders=host&X-Amz-Signature=x",
	} {
		if _, err := readAuthorization(exampleRequest("GET", "/", nil), mustQuery(t, query)); codeOf(err) != authorizationQuery {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// Headers that say what is to be done have to be signed.
func TestUnsignedHeaders(t *testing.T) {
	a := &authorization{signed: []string{"host", "x-amz-date"}}
	if err := a.checkSigned(http.Header{"X-Amz-Date": {"x"}, "Content-Type": {"x"}}); err != nil {
		t.Error(err)
	}
	if err := a.checkSigned(http.Header{"X-Amz-Acl": {"x"}}); codeOf(err) != accessDenied {
		t.Error(err)
	}
}

// signed signs a request, the way that verify does it not: by its parts.
func signed(r *http.Request, secret string, headers []string) {
	a := &authorization{
		id: "id", day: "20130524", region: "r", signed: headers, timestamp: "20130524T000000Z", payload: unsignedPayload,
	}
	query, err := readQuery(r.URL.RawQuery)
	if err != nil {
		panic(err) // it was read before
	}
	text := a.canonical(r, encode(r.URL.Path, true), query)
	a.signature = strings.ToLower(encodeHex(sign(a.key(secret), algorithm+"\n"+a.timestamp+"\n"+a.scope()+"\n"+digestOf(text))))
	r.Header.Set("Authorization", algorithm+" Credential=id/"+a.scope()+", SignedHeaders="+strings.Join(headers,
		";")+", Signature="+a.signature)
}

func encodeHex(bytes []byte) string {
	var out strings.Builder
	for _, b := range bytes {
		out.WriteByte(hexDigits[b>>4])
		out.WriteByte(hexDigits[b&15])
	}
	return out.String()
}

// Whatever is signed is verified, with the secret that it was signed with alone.
func FuzzSignature(f *testing.F) {
	f.Add("GET", "/b/k", "a=1&b", "value", "secret")
	f.Add("PUT", "/b/ä//../%", "x=%2B+&x=a", "  a   b ", "s")
	f.Fuzz(func(t *testing.T, method, path, rawQuery, value, secret string) {
		if _, err := readQuery(rawQuery); err != nil || !isToken(method) || len(path) == 0 || path[0] != '/' {
			return // no request has these
		}
		r := &http.Request{
			Method: method, URL: &url.URL{Path: path, RawQuery: rawQuery}, Host: "h",
			Header: http.Header{"X-Amz-Date": {"20130524T000000Z"}, headerPayload: {unsignedPayload}, "X-Amz-Meta-A": {value}},
		}
		signed(r, secret, []string{"host", "x-amz-date", "x-amz-meta-a"})
		query := mustQuery(t, rawQuery)
		if query.has(queryAlgorithm) || query.has(querySignature) || query.has("AWSAccessKeyId") {
			return // it is signed by its query
		}
		a, err := readAuthorization(r, query)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.verify(r, query, path, a.key(secret)); err != nil {
			t.Fatalf("what was signed is refused: %v", err)
		}
		if err := a.verify(r, query, path, a.key(secret+"x")); err == nil {
			t.Fatal("another secret is taken")
		}
	})
}

// What is encoded is decoded to what it was, and a canonical query stays as it is.
func FuzzCanonicalQuery(f *testing.F) {
	f.Add("a=1&b=%2F&a=0&c", "k/ä")
	f.Fuzz(func(t *testing.T, raw, text string) {
		if back, err := url.PathUnescape(encode(text, true)); err != nil || back != text {
			t.Fatalf("%q comes back as %q, %v", text, back, err)
		}
		query, err := readQuery(raw)
		if err != nil {
			return
		}
		query = slices.DeleteFunc(query, func(one parameter) bool { return one.name == querySignature })
		canonical := query.canonical(querySignature)
		again, err := readQuery(canonical)
		if err != nil || again.canonical(querySignature) != canonical || len(again) != len(query) {
			t.Fatalf("%q is %q, and then %q, %v", raw, canonical, again.canonical(querySignature), err)
		}
	})
}
