package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/fault"
)

// code is a kind of error of S3, with the status and the sentence that it has there. Programs may look at either.
type code struct {
	name   string
	status int
	says   string // empty: what is wrong is said in our own words alone
}

// saying is the same error with the sentence that S3 has for one of its causes.
func (c code) saying(format string, args ...any) code {
	c.says = fmt.Sprintf(format, args...)
	return c
}

// The errors that are answered.
var (
	accessDenied        = code{"AccessDenied", http.StatusForbidden, ""}
	authorizationHeader = code{"AuthorizationHeaderMalformed", http.StatusBadRequest, ""}
	authorizationQuery  = code{"AuthorizationQueryParametersError", http.StatusBadRequest, ""}
	badDigest           = code{"BadDigest", http.StatusBadRequest, ""}
	bucketAlreadyOwned  = code{
		"BucketAlreadyOwnedByYou", http.StatusConflict,
		"Your previous request to create the named bucket succeeded and you already own it.",
	}
	bucketNotEmpty      = code{"BucketNotEmpty", http.StatusConflict, "The bucket you tried to delete is not empty."}
	contentHashMismatch = code{
		"XAmzContentSHA256Mismatch", http.StatusBadRequest,
		"The provided 'x-amz-content-sha256' header does not match what was computed.",
	}
	entityTooSmall = code{"EntityTooSmall", http.StatusBadRequest,
		"Your proposed upload is smaller than the minimum allowed object size."}
	entityTooLarge = code{"EntityTooLarge", http.StatusBadRequest, ""}
	incompleteBody = code{
		"IncompleteBody", http.StatusBadRequest,
		"You did not provide the number of bytes specified by the Content-Length HTTP header.",
	}
	insufficientStorage = code{"InsufficientStorage", http.StatusInsufficientStorage, ""}
	internalError       = code{"InternalError", http.StatusInternalServerError, ""}
	invalidAccessKey    = code{
		"InvalidAccessKeyId", http.StatusForbidden, "The AWS Access Key Id you provided does not exist in our records.",
	}
	invalidArgument   = code{"InvalidArgument", http.StatusBadRequest, ""}
	invalidBucketName = code{"InvalidBucketName", http.StatusBadRequest, "The specified bucket is not valid."}
	invalidDigest     = code{"InvalidDigest", http.StatusBadRequest, "The Content-Md5 you specified is not valid."}
	invalidPart       = code{
		"InvalidPart", http.StatusBadRequest,
		"One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified " +
			"entity tag may not match the part's entity tag.",
	}
	invalidPartOrder = code{
		"InvalidPartOrder", http.StatusBadRequest,
		"The list of parts was not in ascending order. Parts must be ordered by part number.",
	}
	invalidRange        = code{"InvalidRange", http.StatusRequestedRangeNotSatisfiable, "The requested range is not satisfiable"}
	invalidRequest      = code{"InvalidRequest", http.StatusBadRequest, ""}
	invalidStorageClass = code{"InvalidStorageClass", http.StatusBadRequest, ""}
	invalidToken        = code{"InvalidToken", http.StatusBadRequest, "The provided token is malformed or otherwise invalid."}
	invalidURI          = code{"InvalidURI", http.StatusBadRequest, ""}
	keyTooLong          = code{"KeyTooLongError", http.StatusBadRequest, "Your key is too long."}
	malformedXML        = code{
		"MalformedXML", http.StatusBadRequest,
		"The XML you provided was not well-formed or did not validate against our published schema.",
	}
	malformedTrailer = code{
		"MalformedTrailerError", http.StatusBadRequest,
		"The request contained trailing data that was not well-formed or did not conform to our published schema.",
	}
	metadataTooLarge = code{"MetadataTooLarge", http.StatusBadRequest, "Your metadata headers exceed the maximum allowed metadata size."}
	methodNotAllowed = code{"MethodNotAllowed", http.StatusMethodNotAllowed, "The specified method is not allowed against this resource."}
	missingLength    = code{"MissingContentLength", http.StatusLengthRequired, "You must provide the Content-Length HTTP header."}
	noSuchBucket     = code{"NoSuchBucket", http.StatusNotFound, "The specified bucket does not exist."}
	noSuchKey        = code{"NoSuchKey", http.StatusNotFound, "The specified key does not exist."}
	noSuchUpload     = code{
		"NoSuchUpload", http.StatusNotFound,
		"The specified multipart upload does not exist. The upload ID might be invalid, or the multipart upload might have " +
			"been aborted or completed.",
	}
	noSuchVersion      = code{"NoSuchVersion", http.StatusNotFound, "The specified version does not exist."}
	notImplemented     = code{"NotImplemented", http.StatusNotImplemented, ""}
	notModified        = code{"NotModified", http.StatusNotModified, ""}
	operationAborted   = code{"OperationAborted", http.StatusConflict, ""}
	preconditionFailed = code{"PreconditionFailed", http.StatusPreconditionFailed,
		"At least one of the pre-conditions you specified did not hold."}
	requestTimeout       = code{"RequestTimeout", http.StatusBadRequest, ""}
	requestTimeTooSkewed = code{
		"RequestTimeTooSkewed", http.StatusForbidden,
		"The difference between the request time and the current time is too large.",
	}
	serviceUnavailable    = code{"ServiceUnavailable", http.StatusServiceUnavailable, ""}
	signatureDoesNotMatch = code{
		"SignatureDoesNotMatch", http.StatusForbidden,
		"The request signature we calculated does not match the signature you provided. Check your key and signing method.",
	}
	slowDown = code{"SlowDown", http.StatusServiceUnavailable, ""}
)

// cancelled is noted of requests whose clients left, whom nobody can tell.
var cancelled = code{"ClientClosedRequest", 499, ""}

// refusal is an error that is answered as one of S3's.
type refusal struct {
	code  code
	cause error
}

// Error implements error.
func (r *refusal) Error() string { return r.cause.Error() }

// Unwrap implements the errors package's.
func (r *refusal) Unwrap() error { return r.cause }

// errSlow ends a request whose body does not come.
var errSlow = refuse(requestTimeout, "too slow")

func refuse(as code, format string, args ...any) error {
	return &refusal{as, fmt.Errorf(format, args...)}
}

// codes are what classes of errors are to clients.
var codes = map[error]code{
	api.ErrUnknownOutcome: internalError, api.ErrBadRequest: invalidRequest, api.ErrUnauthenticated: accessDenied,
	api.ErrForbidden: accessDenied, api.ErrNotFound: noSuchKey, api.ErrConflict: operationAborted, api.ErrDataLoss: internalError,
	api.ErrFull: insufficientStorage, api.ErrTooFewNodes: serviceUnavailable, api.ErrBusy: slowDown,
	api.ErrUnavailable: serviceUnavailable,
}

// codeOf is what an error is to clients.
func codeOf(err error) code {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused.code
	}
	class := fault.Class(err)
	if class != nil && !errors.Is(class, api.ErrBadRequest) {
		return codes[class]
	}
	switch { // also where a body that could not be read was refused
	case errors.Is(err, io.ErrUnexpectedEOF):
		return incompleteBody
	case errors.Is(err, context.Canceled):
		return cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return serviceUnavailable
	case class != nil:
		return codes[class]
	}
	return internalError
}

// conditional has a conflict that came of a condition of the client be answered as a failed condition.
func conditional(err error) error {
	if err != nil && codeOf(err) == operationAborted {
		return &refusal{preconditionFailed, err}
	}
	return err
}

// errorBody is the body of every refused request.
type errorBody struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	Detail    string `xml:",omitempty"` // what is wrong here, and what to do, where the message is S3's own
	Resource  string `xml:",omitempty"`
	RequestID string `xml:"RequestId"`
}
