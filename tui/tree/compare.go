package tree

import (
	"bytes"
	"errors"
	"io"
)

// compareBytes is how much is compared at a time.
const compareBytes = 256 << 10

// FirstDifference returns the offset of the first byte in which two streams differ, or -1. One ending early differs.
func FirstDifference(a, b io.Reader) (int64, error) {
	bufferA, bufferB := make([]byte, compareBytes), make([]byte, compareBytes)
	for at := int64(0); ; {
		n, err := fill(a, bufferA)
		if err != nil {
			return at, err
		}
		k, err := fill(b, bufferB)
		if err != nil {
			return at, err
		}
		if n != k || !bytes.Equal(bufferA[:n], bufferB[:k]) {
			i := 0
			for i < min(n, k) && bufferA[i] == bufferB[i] {
				i++
			}
			return at + int64(i), nil
		}
		at += int64(n)
		if n < compareBytes {
			return -1, nil
		}
	}
}

// fill reads until buffer is full or the stream ends. Unlike io.ReadFull it passes on the error of a stream that was
// broken off.
func fill(stream io.Reader, buffer []byte) (int, error) {
	for n := 0; ; {
		k, err := stream.Read(buffer[n:])
		n += k
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return n, nil
		}
		if err != nil || n == len(buffer) {
			return n, err
		}
	}
}
