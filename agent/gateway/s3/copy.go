package s3

import "context"

func (s *Server) copyObject(context.Context, *request) error {
	return refuse(notImplemented, "copies are not part of this server")
}
