package sim

// Promise is what a check holds the run against; docs/simulation.md says what each is.
type Promise string

// The promises. Setup is none of the protocol's: what the run itself needs did not work.
const (
	Whole        Promise = "whole"
	Parity       Promise = "parity"
	NoStaleEpoch Promise = "no stale epoch"
	Contents     Promise = "known contents"
	NoLiveDelete Promise = "no live delete"
	OneContent   Promise = "one content"
	NoMixture    Promise = "no mixture"
	NoLoss       Promise = "no loss"
	NoFalseWhole Promise = "no false whole"
	NoFalseAlarm Promise = "no false alarm"
	Liveness     Promise = "liveness"
	NoLeak       Promise = "no leak"
	Agreement    Promise = "the records agree"
	Readable     Promise = "every key reads"
	Linearizable Promise = "linearizability"
	Order        Promise = "revisions in order"
	Setup        Promise = "setup"
)
