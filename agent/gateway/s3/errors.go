package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// code is a kind of error of S3, and the status that it has there.
type code struct {
	name   string
	status int
}

// The errors that are answered.
var (
	accessDenied          = code{"AccessDenied", http.StatusForbidden}
	authorizationHeader   = code{"AuthorizationHeaderMalformed", http.StatusBadRequest}
	authorizationQuery    = code{"AuthorizationQueryParametersError", http.StatusBadRequest}
	badDigest             = code{"BadDigest", http.StatusBadRequest}
	bucketAlreadyOwned    = code{"BucketAlreadyOwnedByYou", http.StatusConflict}
	bucketNotEmpty        = code{"BucketNotEmpty", http.StatusConflict}
	contentHashMismatch   = code{"XAmzContentSHA256Mismatch", http.StatusBadRequest}
	entityTooSmall        = code{"EntityTooSmall", http.StatusBadRequest}
	entityTooLarge        = code{"EntityTooLarge", http.StatusBadRequest}
	incompleteBody        = code{"IncompleteBody", http.StatusBadRequest}
	insufficientStorage   = code{"InsufficientStorage", http.StatusInsufficientStorage}
	internalError         = code{"InternalError", http.StatusInternalServerError}
	invalidAccessKey      = code{"InvalidAccessKeyId", http.StatusForbidden}
	invalidArgument       = code{"InvalidArgument", http.StatusBadRequest}
	invalidBucketName     = code{"InvalidBucketName", http.StatusBadRequest}
	invalidDigest         = code{"InvalidDigest", http.StatusBadRequest}
	invalidPart           = code{"InvalidPart", http.StatusBadRequest}
	invalidPartOrder      = code{"InvalidPartOrder", http.StatusBadRequest}
	invalidRange          = code{"InvalidRange", http.StatusRequestedRangeNotSatisfiable}
	invalidRequest        = code{"InvalidRequest", http.StatusBadRequest}
	invalidStorageClass   = code{"InvalidStorageClass", http.StatusBadRequest}
	invalidToken          = code{"InvalidToken", http.StatusBadRequest}
	invalidURI            = code{"InvalidURI", http.StatusBadRequest}
	keyTooLong            = code{"KeyTooLongError", http.StatusBadRequest}
	malformedXML          = code{"MalformedXML", http.StatusBadRequest}
	metadataTooLarge      = code{"MetadataTooLarge", http.StatusBadRequest}
	methodNotAllowed      = code{"MethodNotAllowed", http.StatusMethodNotAllowed}
	missingLength         = code{"MissingContentLength", http.StatusLengthRequired}
	noSuchBucket          = code{"NoSuchBucket", http.StatusNotFound}
	noSuchKey             = code{"NoSuchKey", http.StatusNotFound}
	noSuchUpload          = code{"NoSuchUpload", http.StatusNotFound}
	noSuchVersion         = code{"NoSuchVersion", http.StatusNotFound}
	notImplemented        = code{"NotImplemented", http.StatusNotImplemented}
	notModified           = code{"NotModified", http.StatusNotModified}
	operationAborted      = code{"OperationAborted", http.StatusConflict}
	preconditionFailed    = code{"PreconditionFailed", http.StatusPreconditionFailed}
	requestTimeout        = code{"RequestTimeout", http.StatusBadRequest}
	requestTimeTooSkewed  = code{"RequestTimeTooSkewed", http.StatusForbidden}
	serviceUnavailable    = code{"ServiceUnavailable", http.StatusServiceUnavailable}
	signatureDoesNotMatch = code{"SignatureDoesNotMatch", http.StatusForbidden}
	slowDown              = code{"SlowDown", http.StatusServiceUnavailable}
)

// cancelled is noted of requests whose clients left, whom nobody can tell.
var cancelled = code{"ClientClosedRequest", 499}

// refusal is an error that is answered as one of S3's.
type refusal struct {
	code  code
	cause error
}

// Error implements error.
func (r *refusal) Error() string { return r.cause.Error() }

// Unwrap implements the errors package's.
func (r *refusal) Unwrap() error { return r.cause }

func refuse(as code, format string, args ...any) error {
	return &refusal{as, fmt.Errorf(format, args...)}
}

// meanings are what errors of the layers below mean to clients: the first that fits.
var meanings = []struct {
	of []error
	is code
}{
	{[]error{api.ErrUnknownOutcome, catalog.ErrUnknown}, internalError},
	{[]error{api.ErrForbidden}, accessDenied},
	{[]error{api.ErrUnauthenticated}, accessDenied},
	{[]error{api.ErrNotFound, catalog.ErrNoObject, catalog.ErrNoGroup}, noSuchKey},
	{[]error{api.ErrConflict, catalog.ErrStale}, operationAborted},
	{[]error{api.ErrDataLoss}, internalError},
	{[]error{api.ErrFull, store.ErrFull}, insufficientStorage},
	{[]error{api.ErrBusy, wire.ErrBusy}, slowDown},
	{[]error{
		api.ErrTooFewNodes, api.ErrUnavailable, object.ErrClosed, catalog.ErrNotActive, catalog.ErrNewer, catalog.ErrFenced,
		catalog.ErrBehind, catalog.ErrClaimed, wire.ErrNotObeyed, wire.ErrUnreachable, store.ErrDown, store.ErrReadOnly, store.ErrAuth,
	}, serviceUnavailable},
	{[]error{io.ErrUnexpectedEOF}, incompleteBody},
	{[]error{context.Canceled}, cancelled},
	{[]error{context.DeadlineExceeded}, serviceUnavailable},
	{[]error{api.ErrBadRequest}, invalidRequest},
}

// codeOf is what an error is to clients.
func codeOf(err error) code {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused.code
	}
	for _, meaning := range meanings {
		for _, one := range meaning.of {
			if errors.Is(err, one) {
				return meaning.is
			}
		}
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
	Resource  string `xml:",omitempty"`
	RequestID string `xml:"RequestId"`
}
