// Package decorate adds behaviour to any store.Store without changing what it stores: Limit, Retry, Meter, Fault and
// Dry. Each is a value that holds the settings or the record, with a method Wrap that puts it around a store; one value
// may be around several stores, which then share its budget or record.
//
// A wrapped store implements store.Lister exactly if the store inside does, and closing it closes the store inside.
package decorate
