// Package controller carries out what package decide decides: one reconciler per concern. Each looks at declared objects
// and at the gateways, asks a pure function what should be, and makes it so through narrow writes: the status and the
// objects the operator owns by server-side apply under one field owner, jobs at the gateways under names that are asked
// for again rather than made twice.
//
//	StorageBackend    status of nodes, capacity and capabilities; does not vanish while something depends on it
//	RedundancyScheme  canonical code and what follows from it; does not vanish while it is on a ladder
//	RedundancyPolicy  acceptance, preflight, the class at the gateways, which Transitions should exist
//	Transition        the job at the gateways: start, progress, pause, resume, throttle, cancel, retry, end
//
// Nothing that matters is kept in memory: a reconciler that is started anew goes on from the objects and the jobs. No
// reconciler lists the users' objects: counts and heat come from the gateways, summed up per class.
package controller
