package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"k8s.io/client-go/rest"
)

// ErrInUse is the error of Start if another server has the directory.
var ErrInUse = errors.New("another API server uses the directory")

// ErrRemote is the error of Start if the address to listen on can be reached from elsewhere and that was not allowed.
var ErrRemote = errors.New("the address can be reached from other machines")

// Options say how a server runs.
type Options struct {
	// Directory keeps the state, the token, the certificate and the kubeconfig. It is made if it is not there, for this
	// user alone.
	Directory string

	// Listen is the address to serve on: host:port, the host an IP address or localhost. Empty is 127.0.0.1:0. Port 0 is
	// the port of the last time if that is free, and any free one otherwise.
	Listen string

	// AllowRemote lets Listen be an address that other machines can reach.
	AllowRemote bool

	// Logger takes warnings and errors of the server and of etcd. The log of the Kubernetes libraries is one for the whole
	// process: the logger of the first server that starts takes it.
	Logger *slog.Logger
}

// Server is a running API server.
type Server struct {
	directory *directory
	etcd      *member
	config    *rest.Config
	stop      context.CancelFunc
	served    chan struct{} // closed when the API is no longer served
	done      chan struct{} // closed when everything has ended
	err       error         // why the API is no longer served; to be read after served
}

// Start starts a server and returns when all kinds are installed and served. The context bounds the start, not the life
// of the server, which ends with Stop or with the process; killed at any moment, also while it starts, the next one on
// the directory goes on with everything that was acknowledged.
func Start(ctx context.Context, options Options) (*Server, error) {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	setProcessLogger(options.Logger)
	address, err := resolve(options.Listen, options.AllowRemote)
	if err != nil {
		return nil, err
	}
	held, err := openDirectory(options.Directory)
	if err != nil {
		return nil, err
	}
	s := &Server{directory: held, stop: func() {}, served: make(chan struct{}), done: make(chan struct{})}
	if err := s.start(ctx, address, options); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the API server in %s: %w", options.Directory, err), s.abandon())
	}
	go s.watchEtcd()
	return s, nil
}

func (s *Server) start(ctx context.Context, address *net.TCPAddr, options Options) error {
	identity, err := s.directory.identity(address)
	if err != nil {
		return err
	}
	if err := s.directory.discardTornState(); err != nil {
		return err
	}
	if s.etcd, err = startEtcd(ctx, s.directory, options.Logger); err != nil {
		return err
	}
	listener, err := s.directory.listen(ctx, address, options.Logger)
	if err != nil {
		return err
	}
	run, err := newCRDServer(s.directory.etcdURL(), listener, identity)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	lifetime, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.config = identity.clientConfig(listener.Addr().(*net.TCPAddr))
	go func() {
		defer close(s.served)
		s.err = run(lifetime)
	}()
	if err := s.install(ctx); err != nil {
		return err
	}
	if err := s.directory.saveKubeconfig(s.config); err != nil {
		return err
	}
	return s.directory.markWhole()
}

// Kubeconfig returns the path of the kubeconfig by which clients on this machine reach the server, with all rights. Only
// this user can read it. Its address, token and certificate stay the same from one start to the next, as long as nobody
// else takes the port.
func (s *Server) Kubeconfig() string { return s.directory.kubeconfig() }

// RESTConfig returns a configuration for clients with all rights. The caller owns it.
func (s *Server) RESTConfig() *rest.Config { return rest.CopyConfig(s.config) }

// Done is closed when the server has ended, by Stop or by a fault that Stop then returns.
func (s *Server) Done() <-chan struct{} { return s.done }

// Stop ends the server: it takes no more requests, lets those that run end, breaks off watches, and returns when etcd
// has closed its files. It can be called again.
func (s *Server) Stop() error {
	s.stop()
	<-s.done
	return s.err
}

// watchEtcd ends everything in order, when the API is told to end or when etcd ends by itself.
func (s *Server) watchEtcd() {
	defer close(s.done)
	var broken error
	select {
	case <-s.served:
	case broken = <-s.etcd.Err():
		s.stop()
	case <-s.etcd.Server.StopNotify():
		broken = errors.New("etcd has stopped by itself")
		s.stop()
	}
	<-s.served
	s.etcd.close()
	s.err = errors.Join(s.err, broken, s.directory.close())
}

// abandon ends what has been started when the start fails.
func (s *Server) abandon() error {
	s.stop()
	if s.config != nil {
		<-s.served
	}
	if s.etcd != nil {
		s.etcd.close()
	}
	return s.directory.close()
}
