// Package direct reads blocks straight from the stores of nodes, past their agents, where these have told the gateway how. Blocks never
// change and name themselves, so that what is read under an address with the right checksum is the right bytes, whoever else is at work.
// Whatever else comes of it, the agent is asked, which knows what its store lost.
package direct
