// Package contract puts what gateways say of nodes, and of the work on them, into messages of the console's contract.
package contract
