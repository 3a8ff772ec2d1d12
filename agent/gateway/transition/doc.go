// Package transition takes objects from one scheme of their ladder to another while they are read and written. A transition
// is a durable job: its record says what is selected and how far it is, survives kill -9, and may be paused, throttled,
// resumed and cancelled at any gateway.
package transition
