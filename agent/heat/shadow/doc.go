// Package shadow says what other ways to choose the rungs of a class would have cost.
//
// A Class is told of every use of a sample of the groups of a class. Beside what is really done, every Candidate has each of
// these groups on a rung of its own, moves it as it would, and adds up what that costs at the prices of the class: bytes
// stored, uses on a rung where they cost more, and moves. "Everything on one rung" is a candidate for each rung, so that
// doing nothing is one too. Nothing is moved but in the books.
//
// Candidates go by an estimate of how often a group is used, and not by what is counted alone: a group that was written an
// hour ago and not used since tells little, and a counter with a long half-life takes days to reach the rate of a group that
// was hot from its first hour. The rate of a group is taken to be drawn from a gamma distribution, whose mean and shape are
// those of the class so far, and what is counted of it since it was first seen makes it more certain (empirical Bayes: Robbins
// 1956; Morris, JASA 1983):
//
//	rate = (counted + prior * mean) / (watched + prior)
//
// counted is the sum over its uses of 2^(-age/halfLife), without the first, which is its write; watched is what that sum would
// be for one use a day, halfLife/ln 2 * (1 - 2^(-age/halfLife)) days; and prior, in days, is how long a group of the class has
// to be watched until it says as much as the class does.
//
// A Class is not safe for concurrent use. Time is told by Advance.
package shadow
