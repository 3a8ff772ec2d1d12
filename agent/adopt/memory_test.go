package adopt

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
)

// memory is a source and target in memory, with places to make mistakes at.
type memory struct {
	mutex   sync.Mutex
	objects map[string]memoryObject
	serial  int

	onOpen func(name string) error                       // before an object is opened
	onRead func(name string)                             // before its first byte is read
	onPut  func(name string, data []byte) ([]byte, bool) // what is stored instead, and whether an error is returned all the same
	onTrim func(name string)                             // before an object is deleted
	puts   int
}

type memoryObject struct {
	data    []byte
	version Version
}

func newMemory(objects map[string]string) *memory {
	m := &memory{objects: map[string]memoryObject{}}
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		m.set(name, objects[name])
	}
	return m
}

// set writes an object as a client of the store would.
func (m *memory) set(name, data string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.store(name, []byte(data))
}

func (m *memory) store(name string, data []byte) Version {
	m.serial++
	version := Version{Tag: strconv.Itoa(m.serial), Size: int64(len(data)), Modified: time.Unix(int64(m.serial), 0).UTC()}
	m.objects[name] = memoryObject{data: data, version: version}
	return version
}

func (m *memory) remove(name string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.objects, name)
}

// contents returns all objects.
func (m *memory) contents() map[string]string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	all := map[string]string{}
	for name, object := range m.objects {
		all[name] = string(object.data)
	}
	return all
}

func (m *memory) look(name string) (memoryObject, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	object, there := m.objects[name]
	if !there {
		return object, ErrGone
	}
	return object, nil
}

func (m *memory) List(ctx context.Context, visit func(string) error) error {
	for _, name := range slices.Sorted(maps.Keys(m.contents())) {
		if err := visit(name); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (m *memory) Stat(_ context.Context, name string) (Version, error) {
	object, err := m.look(name)
	return object.version, err
}

func (m *memory) Open(_ context.Context, name string) (Content, error) {
	if m.onOpen != nil {
		if err := m.onOpen(name); err != nil {
			return nil, err
		}
	}
	object, err := m.look(name)
	if err != nil {
		return nil, err
	}
	return &memoryContent{memory: m, name: name, object: object, from: bytes.NewReader(object.data)}, nil
}

// memoryContent fails, as real ones do, where its object has changed.
type memoryContent struct {
	memory *memory
	name   string
	object memoryObject
	from   *bytes.Reader
}

func (c *memoryContent) Version() Version { return c.object.version }
func (c *memoryContent) Close() error     { return nil }

func (c *memoryContent) Read(p []byte) (int, error) {
	if c.memory.onRead != nil {
		c.memory.onRead(c.name)
	}
	now, err := c.memory.look(c.name)
	if err != nil || !now.version.Same(c.object.version) {
		return 0, ErrChanged
	}
	return c.from.Read(p)
}

func (m *memory) Put(_ context.Context, name string, body io.Reader, size int64, expected Expectation) (Version, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return Version{}, fmt.Errorf("transport: %w", err)
	}
	if int64(len(data)) != size {
		return Version{}, fmt.Errorf("%d bytes came of %d", len(data), size)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.puts++
	object, there := m.objects[name]
	if !expected.Any && ((expected.Version == "") == there || (there && object.version.Tag != expected.Version)) {
		return Version{}, ErrConflict
	}
	fails := false
	if m.onPut != nil {
		if data, fails = m.onPut(name, data); data == nil {
			return Version{}, errMemory
		}
	}
	version := m.store(name, data)
	if fails {
		return Version{}, errMemory
	}
	return version, nil
}

// errMemory is an error that says nothing about what happened.
var errMemory = fmt.Errorf("the connection broke")

func (m *memory) Trim(_ context.Context, name string, at Version) error {
	if m.onTrim != nil {
		m.onTrim(name)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	object, there := m.objects[name]
	switch {
	case !there:
		return ErrGone
	case !object.version.Same(at):
		return ErrChanged
	}
	delete(m.objects, name)
	return nil
}
