// Package price says what storing and moving costs, and whether a move pays. It is pure: amounts from values, no I/O and
// no clock. Amounts are in one currency, whichever the table is in.
//
// Files: table (the prices, and a policy's changes to them), move (the cost of a move and the verdict), savings (against
// keeping everything on the first rung), tariff (a month of holding and serving a class under a scheme), amount (text).
// docs/prices.md has the defaults and the reasons.
package price
