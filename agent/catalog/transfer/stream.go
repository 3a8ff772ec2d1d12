package transfer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
)

// longestText bounds what is believed of the length of a key or a value.
const longestText = 1 << 30

// Send writes the records of a snapshot to w, for NewStream: of each the length of its key and the key, then its value in the same
// way, lengths as unsigned varints. A key without bytes, which no record has, ends them, and the checksum of all follows.
func Send(ctx context.Context, w io.Writer, from Records) error {
	buffered := bufio.NewWriterSize(w, 1<<18)
	put := func(text []byte) error {
		_, errLength := buffered.Write(binary.AppendUvarint(nil, uint64(len(text))))
		_, errText := buffered.Write(text)
		return errors.Join(errLength, errText)
	}
	s, r := newSum(), reader{from: from, own: true}
	for {
		record, err := r.next(ctx)
		if err != nil {
			return fmt.Errorf("sending the catalog: %w", err)
		}
		if record == nil {
			break
		}
		s.add(record)
		if err := errors.Join(put([]byte(record.Key)), put(record.Value)); err != nil {
			return fmt.Errorf("sending the catalog: %w", err)
		}
	}
	if err := errors.Join(put(nil), put([]byte(s.checksum())), buffered.Flush()); err != nil {
		return fmt.Errorf("sending the catalog: %w", err)
	}
	return nil
}

// Stream is a snapshot that is read once, in order.
type Stream struct {
	body io.ReadCloser
	from *bufio.Reader
	sum  *sum
	last string
	done bool
}

// NewStream reads what Send has written to body, which Close closes.
func NewStream(body io.ReadCloser) *Stream {
	return &Stream{body: body, from: bufio.NewReaderSize(body, 1<<18), sum: newSum()}
}

// Scan implements kv.Snapshot for pages of all records that follow one another.
func (s *Stream) Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error) {
	if prefix != "" || after != s.last {
		return nil, fmt.Errorf("records that are received one after the other are not read from %q on", after)
	}
	var page []kv.Record
	for len(page) < limit && !s.done {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		record, err := s.next()
		if err != nil {
			return nil, fmt.Errorf("receiving the catalog: %w", err)
		}
		if record != nil {
			page, s.last = append(page, *record), record.Key
		}
	}
	return page, nil
}

// next returns the next record, nil after the last.
func (s *Stream) next() (*kv.Record, error) {
	key, err := s.text()
	if err != nil {
		return nil, err
	}
	value, err := s.text()
	if err != nil {
		return nil, err
	}
	if len(key) == 0 {
		s.done = true
		if string(value) != s.sum.checksum() {
			return nil, fmt.Errorf("%w: the checksum is not that of what was sent", catalog.ErrCorrupt)
		}
		return nil, nil
	}
	record := &kv.Record{Key: string(key), Value: value}
	s.sum.add(record)
	return record, nil
}

func (s *Stream) text() ([]byte, error) {
	length, err := binary.ReadUvarint(s.from)
	if err == nil && length > longestText {
		err = fmt.Errorf("%w: a text of %d bytes", catalog.ErrCorrupt, length)
	}
	if err == nil {
		var text bytes.Buffer
		if _, err = io.CopyN(&text, s.from, int64(length)); err == nil {
			return append([]byte{}, text.Bytes()...), nil
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}

// Close implements kv.Snapshot.
func (s *Stream) Close() error { return s.body.Close() }
