package integration

import "context"

// TestState collects tests, in the place of versitygw's own, which runs them.
type TestState struct {
	conf *S3Conf

	Tests []IntTest // may run side by side
	Alone []IntTest // may not
}

// NewTestState returns an empty one.
func NewTestState(_ context.Context, conf *S3Conf, _ bool) *TestState { return &TestState{conf: conf} }

// Run adds a test.
func (s *TestState) Run(test IntTest) { s.Tests = append(s.Tests, test) }

// Sync adds a test that runs while no other does.
func (s *TestState) Sync(test IntTest) { s.Alone = append(s.Alone, test) }

// Wait has nothing to wait for.
func (s *TestState) Wait() {}
