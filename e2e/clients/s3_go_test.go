package clients_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	region   = "us-east-1"
	partSize = 5 << 20 // of uploads in parts; S3 allows no smaller ones
)

// accessKey is what a client of S3 signs with.
type accessKey struct{ id, secret string }

// anyKey is for gateways that ask nobody.
var anyKey = accessKey{"anybody", "a secret that is none"}

// s3Options go with what is put.
type s3Options struct {
	contentType string
	metadata    map[string]string
	ifMatch     string // an ETag
	ifAbsent    bool
}

// s3Object is what a client of S3 says of an object.
type s3Object struct {
	size        int64
	tag         string // without quotes
	contentType string
	metadata    map[string]string // names in small letters
}

// s3Client is one of the clients in Go. Errors have a code of S3, by code.
type s3Client interface {
	makeBucket(ctx context.Context, bucket string) error
	buckets(ctx context.Context) ([]string, error)
	removeBucket(ctx context.Context, bucket string) error
	put(ctx context.Context, bucket, key string, data []byte, options s3Options) (tag string, err error)
	get(ctx context.Context, bucket, key string) ([]byte, error)
	getRange(ctx context.Context, bucket, key string, first, last int64) ([]byte, error)
	stat(ctx context.Context, bucket, key string) (s3Object, error)
	// list lists in pages of a few, by the first or the second version of the request.
	list(ctx context.Context, version int, bucket, prefix, delimiter string) (keys, prefixes []string, err error)
	// copy copies within a bucket; with the metadata of options where they have some, else with that of the source.
	copy(ctx context.Context, bucket, from, to string, options s3Options) error
	remove(ctx context.Context, bucket string, keys ...string) error
	upload(ctx context.Context, bucket, key string, data []byte, options s3Options) error // in parts of partSize
	download(ctx context.Context, bucket, key string) ([]byte, error)                     // by ranges, where the client can
	signGet(ctx context.Context, bucket, key string) (string, error)
	signPut(ctx context.Context, bucket, key string) (string, error)
}

// code is S3's for an error, "" for none.
func code(err error) string {
	var ofAWS smithy.APIError
	var ofMinio minio.ErrorResponse
	switch {
	case err == nil:
		return ""
	case errors.As(err, &ofAWS):
		return ofAWS.ErrorCode()
	case errors.As(err, &ofMinio):
		return ofMinio.Code
	}
	return err.Error()
}

// awsClient is AWS's own.
type awsClient struct{ *s3.Client }

// newAWS makes one for a gateway at a URL.
func newAWS(endpoint string, key accessKey, transport http.RoundTripper, attempts int) awsClient {
	return awsClient{s3.New(s3.Options{
		BaseEndpoint: &endpoint, Region: region, UsePathStyle: true, RetryMaxAttempts: attempts,
		HTTPClient: &http.Client{Transport: transport, Timeout: patience},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: key.id, SecretAccessKey: key.secret}, nil
		}),
	})}
}

func (c awsClient) makeBucket(ctx context.Context, bucket string) error {
	_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &bucket})
	return err
}

func (c awsClient) buckets(ctx context.Context) ([]string, error) {
	out, err := c.ListBuckets(ctx, &s3.ListBucketsInput{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, bucket := range out.Buckets {
		names = append(names, *bucket.Name)
	}
	return names, nil
}

func (c awsClient) removeBucket(ctx context.Context, bucket string) error {
	_, err := c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &bucket})
	return err
}

// optional is a header that is not sent where it is empty.
func optional(value string) *string {
	if value == "" {
		return nil
	}
	return &value
}

func (c awsClient) put(ctx context.Context, bucket, key string, data []byte, options s3Options) (string, error) {
	in := &s3.PutObjectInput{
		Bucket: &bucket, Key: &key, Body: bytes.NewReader(data), ContentType: optional(options.contentType), Metadata: options.metadata,
		IfMatch: optional(options.ifMatch),
	}
	if options.ifAbsent {
		in.IfNoneMatch = aws.String("*")
	}
	out, err := c.PutObject(ctx, in)
	if err != nil {
		return "", err
	}
	return aws.ToString(out.ETag), nil
}

func (c awsClient) read(ctx context.Context, in *s3.GetObjectInput) ([]byte, *s3.GetObjectOutput, error) {
	out, err := c.GetObject(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(out.Body)
	return data, out, errors.Join(err, out.Body.Close())
}

func (c awsClient) get(ctx context.Context, bucket, key string) ([]byte, error) {
	data, _, err := c.read(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	return data, err
}

func (c awsClient) getRange(ctx context.Context, bucket, key string, first, last int64) ([]byte, error) {
	var options minio.GetObjectOptions // whose words for a range are those of HTTP
	if err := options.SetRange(first, last); err != nil {
		return nil, err
	}
	data, _, err := c.read(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key, Range: aws.String(options.Header().Get("Range"))})
	return data, err
}

func (c awsClient) stat(ctx context.Context, bucket, key string) (s3Object, error) {
	out, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return s3Object{}, err
	}
	tag := strings.Trim(aws.ToString(out.ETag), `"`)
	return s3Object{aws.ToInt64(out.ContentLength), tag, aws.ToString(out.ContentType), out.Metadata}, nil
}

func (c awsClient) list(ctx context.Context, version int, bucket, prefix, delimiter string) (keys, prefixes []string, err error) {
	take := func(contents []types.Object, common []types.CommonPrefix) {
		for _, object := range contents {
			keys = append(keys, *object.Key)
		}
		for _, prefix := range common {
			prefixes = append(prefixes, *prefix.Prefix)
		}
	}
	if version == 2 {
		pages := s3.NewListObjectsV2Paginator(c.Client, &s3.ListObjectsV2Input{
			Bucket: &bucket, Prefix: optional(prefix), Delimiter: optional(delimiter), MaxKeys: aws.Int32(3),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, nil, err
			}
			take(page.Contents, page.CommonPrefixes)
		}
		return keys, prefixes, nil
	}
	in := &s3.ListObjectsInput{Bucket: &bucket, Prefix: optional(prefix), Delimiter: optional(delimiter), MaxKeys: aws.Int32(3)}
	for {
		page, err := c.ListObjects(ctx, in)
		if err != nil {
			return nil, nil, err
		}
		take(page.Contents, page.CommonPrefixes)
		if !aws.ToBool(page.IsTruncated) {
			return keys, prefixes, nil
		}
		if in.Marker = page.NextMarker; in.Marker == nil { // S3 has it for listings with a delimiter alone
			in.Marker = &keys[len(keys)-1]
		}
	}
}

func (c awsClient) copy(ctx context.Context, bucket, from, to string, options s3Options) error {
	source := strings.ReplaceAll(url.QueryEscape(bucket+"/"+from), "+", "%20")
	in := &s3.CopyObjectInput{Bucket: &bucket, Key: &to, CopySource: &source}
	if options.metadata != nil {
		in.MetadataDirective, in.Metadata, in.ContentType = types.MetadataDirectiveReplace, options.metadata, optional(options.contentType)
	}
	_, err := c.CopyObject(ctx, in)
	return err
}

func (c awsClient) remove(ctx context.Context, bucket string, keys ...string) error {
	if len(keys) == 1 {
		_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &keys[0]})
		return err
	}
	var objects []types.ObjectIdentifier
	for _, key := range keys {
		objects = append(objects, types.ObjectIdentifier{Key: aws.String(key)})
	}
	out, err := c.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &bucket, Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(true)}})
	if err != nil {
		return err
	}
	for _, failed := range out.Errors {
		err = errors.Join(err, &smithy.GenericAPIError{Code: aws.ToString(failed.Code), Message: aws.ToString(failed.Message)})
	}
	return err
}

func (c awsClient) transfer() *transfermanager.Client {
	return transfermanager.New(c.Client, func(o *transfermanager.Options) { o.PartSizeBytes, o.MultipartUploadThreshold = partSize, partSize })
}

func (c awsClient) upload(ctx context.Context, bucket, key string, data []byte, options s3Options) error {
	_, err := c.transfer().UploadObject(ctx, &transfermanager.UploadObjectInput{
		Bucket: &bucket, Key: &key, Body: bytes.NewReader(data), ContentType: optional(options.contentType), Metadata: options.metadata,
	})
	return err
}

func (c awsClient) download(ctx context.Context, bucket, key string) ([]byte, error) {
	out, err := c.transfer().GetObject(ctx, &transfermanager.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return nil, err
	}
	return io.ReadAll(out.Body)
}

func (c awsClient) signGet(ctx context.Context, bucket, key string) (string, error) {
	in := &s3.GetObjectInput{Bucket: &bucket, Key: &key}
	signed, err := s3.NewPresignClient(c.Client).PresignGetObject(ctx, in, s3.WithPresignExpires(time.Minute))
	if err != nil {
		return "", err
	}
	return signed.URL, nil
}

func (c awsClient) signPut(ctx context.Context, bucket, key string) (string, error) {
	in := &s3.PutObjectInput{Bucket: &bucket, Key: &key}
	signed, err := s3.NewPresignClient(c.Client).PresignPutObject(ctx, in, s3.WithPresignExpires(time.Minute))
	if err != nil {
		return "", err
	}
	return signed.URL, nil
}

// minioClient is MinIO's.
type minioClient struct{ *minio.Client }

func newMinio(t *testing.T, endpoint string, key accessKey, transport http.RoundTripper) minioClient {
	t.Helper()
	scheme, address, _ := strings.Cut(endpoint, "://")
	c, err := minio.New(address, &minio.Options{
		Creds: credentials.NewStaticV4(key.id, key.secret, ""), Secure: scheme == "https", Transport: transport, MaxRetries: 1,
		BucketLookup: minio.BucketLookupPath, TrailingHeaders: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return minioClient{c}
}

func (c minioClient) makeBucket(ctx context.Context, bucket string) error {
	return c.MakeBucket(ctx, bucket, minio.MakeBucketOptions{})
}

func (c minioClient) buckets(ctx context.Context) ([]string, error) {
	found, err := c.ListBuckets(ctx)
	var names []string
	for _, bucket := range found {
		names = append(names, bucket.Name)
	}
	return names, err
}

func (c minioClient) removeBucket(ctx context.Context, bucket string) error {
	return c.RemoveBucket(ctx, bucket)
}

func (c minioClient) write(ctx context.Context, bucket, key string, data []byte, options s3Options) (string, error) {
	metadata := maps.Clone(options.metadata) // which it adds to
	with := minio.PutObjectOptions{ContentType: options.contentType, UserMetadata: metadata, PartSize: partSize}
	if options.ifAbsent {
		with.SetMatchETagExcept("*")
	}
	if options.ifMatch != "" {
		with.SetMatchETag(strings.Trim(options.ifMatch, `"`))
	}
	out, err := c.PutObject(ctx, bucket, key, bytes.NewReader(data), int64(len(data)), with)
	return out.ETag, err
}

func (c minioClient) put(ctx context.Context, bucket, key string, data []byte, options s3Options) (string, error) {
	return c.write(ctx, bucket, key, data, options)
}

func (c minioClient) read(ctx context.Context, bucket, key string, options minio.GetObjectOptions) ([]byte, error) {
	object, err := c.GetObject(ctx, bucket, key, options)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(object)
	return data, errors.Join(err, object.Close())
}

func (c minioClient) get(ctx context.Context, bucket, key string) ([]byte, error) {
	return c.read(ctx, bucket, key, minio.GetObjectOptions{})
}

func (c minioClient) getRange(ctx context.Context, bucket, key string, first, last int64) ([]byte, error) {
	var options minio.GetObjectOptions
	if err := options.SetRange(first, last); err != nil {
		return nil, err
	}
	return c.read(ctx, bucket, key, options)
}

func (c minioClient) stat(ctx context.Context, bucket, key string) (s3Object, error) {
	out, err := c.StatObject(ctx, bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return s3Object{}, err
	}
	metadata := map[string]string{}
	for name, value := range out.UserMetadata {
		metadata[strings.ToLower(name)] = value
	}
	return s3Object{out.Size, out.ETag, out.ContentType, metadata}, nil
}

func (c minioClient) list(ctx context.Context, version int, bucket, prefix, delimiter string) (keys, prefixes []string, err error) {
	for object := range c.ListObjects(ctx, bucket, minio.ListObjectsOptions{
		Prefix: prefix, Recursive: delimiter == "", MaxKeys: 3, UseV1: version == 1,
	}) {
		if object.Err != nil {
			return nil, nil, object.Err
		}
		if strings.HasSuffix(object.Key, "/") {
			prefixes = append(prefixes, object.Key)
		} else {
			keys = append(keys, object.Key)
		}
	}
	return keys, prefixes, nil
}

func (c minioClient) copy(ctx context.Context, bucket, from, to string, options s3Options) error {
	_, err := c.CopyObject(ctx, minio.CopyDestOptions{
		Bucket: bucket, Object: to, UserMetadata: options.metadata, ReplaceMetadata: options.metadata != nil, ContentType: options.contentType,
	}, minio.CopySrcOptions{Bucket: bucket, Object: from})
	return err
}

func (c minioClient) remove(ctx context.Context, bucket string, keys ...string) error {
	if len(keys) == 1 {
		return c.RemoveObject(ctx, bucket, keys[0], minio.RemoveObjectOptions{})
	}
	results, err := c.RemoveObjectsWithIter(ctx, bucket, func(yield func(minio.ObjectInfo) bool) {
		for _, key := range keys {
			if !yield(minio.ObjectInfo{Key: key}) {
				return
			}
		}
	}, minio.RemoveObjectsOptions{})
	if err != nil {
		return err
	}
	for result := range results {
		err = errors.Join(err, result.Err)
	}
	return err
}

func (c minioClient) upload(ctx context.Context, bucket, key string, data []byte, options s3Options) error {
	_, err := c.write(ctx, bucket, key, data, options)
	return err
}

func (c minioClient) download(ctx context.Context, bucket, key string) ([]byte, error) {
	return c.get(ctx, bucket, key)
}

func (c minioClient) signGet(ctx context.Context, bucket, key string) (string, error) {
	signed, err := c.PresignedGetObject(ctx, bucket, key, time.Minute, nil)
	if err != nil {
		return "", err
	}
	return signed.String(), nil
}

func (c minioClient) signPut(ctx context.Context, bucket, key string) (string, error) {
	signed, err := c.PresignedPutObject(ctx, bucket, key, time.Minute)
	if err != nil {
		return "", err
	}
	return signed.String(), nil
}
