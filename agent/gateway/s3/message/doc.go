// Package message has what requests and answers of S3 say in XML, as the Amazon S3 API Reference has it.
package message
