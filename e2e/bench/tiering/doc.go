// Command tiering replays traces of real accesses under a clock stretched over days, and compares what a temperature
// policy stores and moves with keeping everything at one code and with an oracle that knows the future.
//
// Every object of a trace, or every 4 MiB extent of a disk, is a group of its own. The policy is carried out by the
// functions the operator uses (operator/decide), with the heat reported once an hour and moves done within the hour.
//
// The oracle has, for each group by itself, the way along the ladder that costs least: storage, plus what moves send,
// plus a price for every access away from whole copies. The prices of accesses are those at which the policy's bounds
// break even, so that the policy and the oracle want the same; the oracle only knows when.
package main
