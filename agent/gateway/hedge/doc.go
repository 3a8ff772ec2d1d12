// Package hedge decides when a read that a node has not answered yet is asked of other nodes as well, and how often.
package hedge
