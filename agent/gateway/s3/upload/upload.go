package upload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
)

// How long uploads are kept.
const (
	Kept          = 7 * 24 * time.Hour // one that is not completed
	completedKept = 24 * time.Hour     // so that a request that is sent again is answered as before
)

// MetaState is the metadata that has what is known of an upload, in JSON, beside what its object will have. No client can give it.
const MetaState = "s3:upload"

const (
	partsPage   = 1000 // parts that are read together
	dropsAtOnce = 16
)

// recordBody are the bytes of the object that says what is known of an upload. They are there so that it has a block, from which it comes
// back when the catalog is rebuilt: an empty object has none.
const recordBody = "upload\n"

// ErrGone says that an upload is not there: it was completed or given up, or has expired, or never was.
var ErrGone = errors.New("there is no such upload")

// ReplacedError says that a part is another one than it was.
type ReplacedError struct{ Number int }

// Error implements error.
func (e *ReplacedError) Error() string {
	return fmt.Sprintf("part %d was put again while it was read", e.Number)
}

// State is what is kept of an upload.
type State struct {
	Class     string     `json:"class"`
	Scheme    string     `json:"scheme,omitempty"`
	Algorithm string     `json:"algorithm,omitempty"` // of checksums, as in the names of headers
	Type      string     `json:"type,omitempty"`      // of the checksum that the object will have
	Completed *Completed `json:"completed,omitempty"` // nil: it is under way
}

// Completed is what came of an upload.
type Completed struct {
	List string `json:"list"` // a digest of the parts that were asked for
	ETag string `json:"etag"`
	Sum  string `json:"sum,omitempty"`
}

// Upload is one, as it was when it was looked at.
type Upload struct {
	Name
	State
	record api.Object
}

// Began is when the upload began; when it was completed, of one that was.
func (u *Upload) Began() time.Time { return u.record.Modified }

// Metadata is what the object of the upload will have.
func (u *Upload) Metadata() map[string]string {
	metadata := maps.Clone(u.record.Metadata)
	delete(metadata, MetaState)
	return metadata
}

// Part is one that was put.
type Part struct {
	Number int
	Object api.Object
}

// Uploads are those that are kept among the objects of a gateway.
type Uploads struct{ objects *object.Objects }

// Of returns the uploads among objects.
func Of(objects *object.Objects) Uploads { return Uploads{objects} }

// Begin begins an upload of an object that will have this metadata, and returns its ID.
func (s Uploads) Begin(ctx context.Context, bucket, key string, state *State, metadata map[string]string) (id string, err error) {
	now := time.Now()
	name := Name{bucket, key, newID(now)}
	return name.ID, s.put(ctx, name, state, metadata, api.PutOptions{Expires: now.Add(Kept)})
}

// put writes what is known of an upload.
func (s Uploads) put(ctx context.Context, name Name, state *State, metadata map[string]string, options api.PutOptions) error {
	text, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("writing what is kept of upload %s: %w", name.ID, err)
	}
	options.Metadata = map[string]string{}
	maps.Copy(options.Metadata, metadata)
	options.Metadata[MetaState], options.Class, options.Size = string(text), state.Class, int64(len(recordBody))
	_, err = s.objects.Put(ctx, name.record(), strings.NewReader(recordBody), options)
	return err
}

// Find returns an upload, or ErrGone.
func (s Uploads) Find(ctx context.Context, name Name) (*Upload, error) {
	if !validID.MatchString(name.ID) {
		return nil, ErrGone
	}
	is, err := s.objects.Find(ctx, name.record())
	if err != nil {
		return nil, err
	}
	if is == nil {
		return nil, ErrGone
	}
	return read(name, is)
}

func read(name Name, is *api.Object) (*Upload, error) {
	u := &Upload{Name: name, record: *is}
	if err := json.Unmarshal([]byte(is.Metadata[MetaState]), &u.State); err != nil {
		return nil, fmt.Errorf("reading what is kept of upload %s: %w", name.ID, err)
	}
	return u, nil
}

// PutPart stores a part, over the one that the number has.
func (s Uploads) PutPart(
	ctx context.Context, u *Upload, number int, body io.Reader, size int64, digests func() (map[string]string, error),
) (api.Object, error) {
	return s.objects.Put(ctx, u.part(number), body, api.PutOptions{
		Class: u.Class, Scheme: u.Scheme, Size: size, Expires: u.record.Expires, Digests: digests,
	})
}

// Parts returns up to limit parts of an upload after one of a number.
func (s Uploads) Parts(ctx context.Context, u *Upload, after, limit int) (parts []Part, err error) {
	name := u.Name.record()
	from := name
	if after > 0 {
		from = u.part(after)
	}
	for len(parts) < limit {
		wanted := min(limit-len(parts), partsPage)
		page, err := object.Records(ctx, s.objects, name, from, wanted)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if from, err = api.DecodeKey(page[i].Key64); err != nil {
				return nil, err
			}
			if number, err := strconv.Atoi(from[len(name):]); err == nil {
				parts = append(parts, Part{number, page[i]})
			}
		}
		if len(page) < wanted {
			break
		}
	}
	return parts, nil
}

// Write writes the bytes of parts, one after the other. It fails with ErrGone where one is not there any more, and with ReplacedError
// where one was put again.
func (s Uploads) Write(ctx context.Context, u *Upload, parts []Part, w io.Writer) error {
	for i := range parts {
		is := &parts[i]
		reader, err := s.objects.Open(ctx, u.part(is.Number))
		if isGone(err) {
			return ErrGone
		}
		if err != nil {
			return err
		}
		if reader.Object().Revision != is.Object.Revision {
			return &ReplacedError{is.Number}
		}
		if err := reader.WriteTo(ctx, w, 0, is.Object.Size); err != nil {
			return err
		}
	}
	return nil
}

// Abort gives an upload up, with its parts. Parts that come later expire.
func (s Uploads) Abort(ctx context.Context, u *Upload) error {
	if err := s.objects.Delete(ctx, u.Name.record(), &u.record.Revision); err != nil {
		if isGone(err) {
			return ErrGone
		}
		return err
	}
	return s.drop(ctx, u)
}

// Finish keeps what came of an upload for those who ask again, and deletes its parts.
func (s Uploads) Finish(ctx context.Context, u *Upload, came *Completed) error {
	state := u.State
	state.Completed = came
	err := s.put(ctx, u.Name, &state, nil, api.PutOptions{
		Expires: time.Now().Add(completedKept), IfRevision: &u.record.Revision,
	})
	if err != nil {
		return err
	}
	return s.drop(ctx, u)
}

// drop deletes the parts of an upload.
func (s Uploads) drop(ctx context.Context, u *Upload) error {
	parts, err := s.Parts(ctx, u, 0, PartsMost)
	if err != nil {
		return err
	}
	var work errgroup.Group
	work.SetLimit(dropsAtOnce)
	for i := range parts {
		work.Go(func() error {
			err := s.objects.Delete(ctx, u.part(parts[i].Number), nil)
			if isGone(err) {
				return nil
			}
			return err
		})
	}
	return work.Wait()
}

// isGone reports whether an error says that there is no such object, and not that nobody knows.
func isGone(err error) bool {
	if errors.Is(err, api.ErrUnknownOutcome) || errors.Is(err, catalog.ErrUnknown) {
		return false
	}
	return errors.Is(err, api.ErrNotFound) || errors.Is(err, catalog.ErrNoObject) || errors.Is(err, catalog.ErrNoGroup)
}
