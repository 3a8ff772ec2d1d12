module restripe.io/kernelbench

go 1.26.0

require (
	github.com/klauspost/reedsolomon v1.14.2
	github.com/restripe/restripe v0.0.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/fxamacker/cbor/v2 v2.9.1 // indirect
	github.com/klauspost/cpuid/v2 v2.4.2 // indirect
	github.com/x448/float16 v0.8.4 // indirect
)

replace github.com/restripe/restripe => ../../..
