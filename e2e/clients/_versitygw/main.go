// Command versitygw-tests runs the tests of S3 that versitygw has for any server, and prints a line of JSON for each, as result has it:
//
//	versitygw-tests -endpoint http://127.0.0.1:9000 [-run EXPRESSION] [-groups PutObject,GetObject]
//
// The key is that of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. The tests make buckets whose names begin with "test-bucket-", and print
// what they do to the standard error output. build.sh builds it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/versity/versitygw/tests/integration"
)

// group is tests of one request, or of one subject.
type group struct {
	name string
	add  func(*integration.TestState)
}

// groups are those that versitygw runs against servers of others, but for the group GatewayIAM, which asks its own program for users.
var groups = []group{
	{"Authentication", integration.TestAuthentication},
	{"PresignedAuthentication", integration.TestPresignedAuthentication},
	{"CreateBucket", integration.TestCreateBucket},
	{"HeadBucket", integration.TestHeadBucket},
	{"ListBuckets", integration.TestListBuckets},
	{"DeleteBucket", integration.TestDeleteBucket},
	{"PutBucketOwnershipControls", integration.TestPutBucketOwnershipControls},
	{"GetBucketOwnershipControls", integration.TestGetBucketOwnershipControls},
	{"DeleteBucketOwnershipControls", integration.TestDeleteBucketOwnershipControls},
	{"PutBucketTagging", integration.TestPutBucketTagging},
	{"GetBucketTagging", integration.TestGetBucketTagging},
	{"DeleteBucketTagging", integration.TestDeleteBucketTagging},
	{"GetBucketLocation", integration.TestGetBucketLocation},
	{"PutObject", integration.TestPutObject},
	{"HeadObject", integration.TestHeadObject},
	{"GetObjectAttributes", integration.TestGetObjectAttributes},
	{"GetObject", integration.TestGetObject},
	{"ListObjects", integration.TestListObjects},
	{"ListObjectVersions_VD", integration.TestListObjectVersions_VD},
	{"DeleteObject", integration.TestDeleteObject},
	{"DeleteObjects", integration.TestDeleteObjects},
	{"CopyObject", integration.TestCopyObject},
	{"PutObjectTagging", integration.TestPutObjectTagging},
	{"GetObjectTagging", integration.TestGetObjectTagging},
	{"DeleteObjectTagging", integration.TestDeleteObjectTagging},
	{"CreateMultipartUpload", integration.TestCreateMultipartUpload},
	{"UploadPart", integration.TestUploadPart},
	{"UploadPartCopy", integration.TestUploadPartCopy},
	{"ListParts", integration.TestListParts},
	{"ListMultipartUploads", integration.TestListMultipartUploads},
	{"AbortMultipartUpload", integration.TestAbortMultipartUpload},
	{"CompleteMultipartUpload", integration.TestCompleteMultipartUpload},
	{"PutBucketAcl", integration.TestPutBucketAcl},
	{"GetBucketAcl", integration.TestGetBucketAcl},
	{"PutBucketPolicy", integration.TestPutBucketPolicy},
	{"GetBucketPolicy", integration.TestGetBucketPolicy},
	{"DeleteBucketPolicy", integration.TestDeleteBucketPolicy},
	{"PutBucketCors", integration.TestPutBucketCors},
	{"GetBucketCors", integration.TestGetBucketCors},
	{"DeleteBucketCors", integration.TestDeleteBucketCors},
	{"PutBucketWebsite", integration.TestPutBucketWebsite},
	{"GetBucketWebsite", integration.TestGetBucketWebsite},
	{"DeleteBucketWebsite", integration.TestDeleteBucketWebsite},
	{"PreflightOPTIONSEndpoint", integration.TestPreflightOPTIONSEndpoint},
	{"PutObjectLockConfiguration", integration.TestPutObjectLockConfiguration},
	{"GetObjectLockConfiguration", integration.TestGetObjectLockConfiguration},
	{"PutObjectRetention", integration.TestPutObjectRetention},
	{"GetObjectRetention", integration.TestGetObjectRetention},
	{"PutObjectLegalHold", integration.TestPutObjectLegalHold},
	{"GetObjectLegalHold", integration.TestGetObjectLegalHold},
	{"WORMProtection", integration.TestWORMProtection},
	{"AccessControl", integration.TestAccessControl},
	{"Router", integration.TestRouter},
	{"PostObject", integration.TestPostObject},
	{"UnsignedStreaminPayloadTrailer", integration.TestUnsignedStreaminPayloadTrailer},
	{"SignedStreaminPayload", integration.TestSignedStreaminPayload},
	{"SignedStreaminPayloadTrailer", integration.TestSignedStreaminPayloadTrailer},
	{"PublicBuckets", integration.TestPublicBuckets},
	{"Server", integration.TestServer},
}

// result is what is printed of a test.
type result struct {
	Group   string  `json:"group"`
	Name    string  `json:"name"`
	Error   string  `json:"error,omitempty"` // none: it passed
	Seconds float64 `json:"seconds"`
}

func main() {
	endpoint := flag.String("endpoint", "", "URL of the server")
	wanted := flag.String("groups", "", "names of groups, with commas; default: all")
	matching := flag.String("run", "", "only tests whose names match this regular expression")
	parallel := flag.Int("parallel", 8, "how many run side by side")
	flag.Parse()
	if err := run(*endpoint, *wanted, *matching, *parallel); err != nil {
		fmt.Fprintln(os.Stderr, "versitygw-tests:", err)
		os.Exit(2)
	}
}

func run(endpoint, wanted, matching string, parallel int) error {
	expression, err := regexp.Compile(matching)
	if err != nil {
		return err
	}
	names := strings.FieldsFunc(wanted, func(c rune) bool { return c == ',' })
	for _, name := range names {
		if !slices.ContainsFunc(groups, func(g group) bool { return g.name == name }) {
			return fmt.Errorf("there is no group %q", name)
		}
	}
	out := json.NewEncoder(os.Stdout)
	os.Stdout = os.Stderr // of the tests
	r := runner{
		out: out,
		configuration: integration.NewS3Conf(integration.WithEndpoint(endpoint), integration.WithRegion("us-east-1"),
			integration.WithAccess(os.Getenv("AWS_ACCESS_KEY_ID")), integration.WithSecret(os.Getenv("AWS_SECRET_ACCESS_KEY"))),
	}
	type named struct {
		group, name string
		test        integration.IntTest
	}
	var beside, alone []named
	for _, g := range groups {
		if len(names) > 0 && !slices.Contains(names, g.name) {
			continue
		}
		state := integration.NewTestState(context.Background(), r.configuration, false)
		g.add(state)
		for i, test := range slices.Concat(state.Tests, state.Alone) {
			one := named{g.name, nameOf(test), test}
			if !expression.MatchString(one.name) {
				continue
			}
			if i < len(state.Tests) && !strings.Contains(one.name, "racey") { // such do much at once, and do not try again
				beside = append(beside, one)
			} else {
				alone = append(alone, one)
			}
		}
	}
	slices.Reverse(alone) // that of no buckets at all is the last, and others leave some behind when they fail
	for _, one := range alone {
		r.run(one.group, one.name, one.test)
	}
	queue := make(chan named)
	var running sync.WaitGroup
	for range parallel {
		running.Go(func() {
			for one := range queue {
				r.run(one.group, one.name, one.test)
			}
		})
	}
	for _, one := range beside {
		queue <- one
	}
	close(queue)
	running.Wait()
	return r.err
}

// nameOf is the name of a test's function.
func nameOf(test integration.IntTest) string {
	name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
	return name[strings.LastIndexByte(name, '.')+1:]
}

// runner runs tests.
type runner struct {
	configuration *integration.S3Conf

	mutex sync.Mutex
	out   *json.Encoder
	err   error
}

// run runs a test to its end. One that panics has failed, as some do where an answer lacks what they look at.
func (r *runner) run(group, name string, test integration.IntTest) {
	began := time.Now()
	of := result{Group: group, Name: name}
	func() {
		defer func() {
			if reason := recover(); reason != nil {
				of.Error = fmt.Sprintf("panic: %v", reason)
				fmt.Fprintf(os.Stderr, "%s: panic: %v\n%s", name, reason, debug.Stack())
			}
		}()
		if err := test(r.configuration); err != nil {
			of.Error = err.Error()
		}
	}()
	of.Seconds = time.Since(began).Seconds()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err := r.out.Encode(of); err != nil && r.err == nil {
		r.err = err
	}
}
