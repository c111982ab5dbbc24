package cli

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/google/renameio/v2/maybe"

	"github.com/flyprof/flyprof-mcp/core/config"
	"github.com/flyprof/flyprof-mcp/core/runs"
	"github.com/flyprof/flyprof-mcp/internal/httpd"
)

// tokenVar has the bearer token itself. It is no flag: the arguments of a process can be read by every user of the host.
const tokenVar = "FLYPROF_HTTP_TOKEN"

// serveHTTP answers MCP over HTTP until ctx ends. Runs outlive the server: a client that went away may come back for them.
func serveHTTP(ctx context.Context, flags *settingFlags) error {
	given := os.Getenv(tokenVar)
	_ = os.Unsetenv(tokenVar) // no child is to have it
	a, closer, err := flags.open()
	if err != nil {
		return err
	}
	defer closer.Close()
	c, log := a.config, a.log
	slog.SetDefault(log)
	a.service.OnServerExit = runs.FinishOnExit
	address, err := listenAddress(c.HTTP, given != "" || c.HTTPTokenFile != "")
	if err != nil {
		return err
	}
	if err := checkCertificate(c); err != nil {
		return err
	}
	token, err := httpToken(ctx, c, given, a.service.Store, log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return invalidSetting("http", "FLYPROF_HTTP", c.HTTP, "an address of this host with a free port", err)
	}
	if c.Simulate != "" {
		log.Warn("SIMULATED GPU: every figure of every capture is invented", "arch", c.Simulate)
	}
	background, stop := context.WithCancel(ctx)
	defer stop()
	go a.recover(background)
	meters := newMeters(a)
	a.served.Observe = meters.call
	hosts := c.HTTPAllowHost
	if host, _, err := net.SplitHostPort(address); err == nil && host != "" && !net.ParseIP(host).IsUnspecified() {
		hosts = append(hosts, host)
	}
	handler := httpd.New(a.server(), httpd.Options{
		Token: token, Hosts: hosts, Origins: c.HTTPAllowOrigin, Intercept: a.intercept, Log: log, Metrics: meters.handler(), Observe: meters.request,
	})
	meters.watch(handler)
	scheme := "http"
	if c.HTTPCert != "" {
		scheme = "https"
	} else if at, ok := listener.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() {
		log.Warn("others can reach this address, and the token crosses the network as clear text: give a certificate (--http-cert, --http-key)")
	}
	log.Info("serving MCP over HTTP", "url", scheme+"://"+listener.Addr().String()+httpd.Endpoint, "version", version(), "tools", len(a.served.Tools), "runs", a.service.Store.Dir())
	err = handler.Serve(ctx, listener, c.HTTPCert, c.HTTPKey)
	a.spawner.Release()
	return err
}

// checkCertificate finds out before the port is taken whether the certificate can be used.
func checkCertificate(c config.Config) error {
	const allowed = "PEM files of a certificate and its key (--http-cert and --http-key), or neither"
	if (c.HTTPCert == "") != (c.HTTPKey == "") {
		return invalidSetting("http-cert", "FLYPROF_HTTP_CERT", c.HTTPCert, allowed, errors.New("one of the two is missing"))
	}
	if c.HTTPCert == "" {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(c.HTTPCert, c.HTTPKey); err != nil {
		return invalidSetting("http-cert", "FLYPROF_HTTP_CERT", c.HTTPCert, allowed, err)
	}
	return nil
}

// listenAddress reads the setting: a port alone means the loopback address, and all interfaces, or any address that others can reach,
// must be named in full and need a token of the user's own.
func listenAddress(setting string, hasToken bool) (string, error) {
	bad := func(why string) (string, error) {
		return "", invalidSetting("http", "FLYPROF_HTTP", setting, "a port, or host:port; beyond the loopback address only with a token", errors.New(why))
	}
	host, port, err := net.SplitHostPort(setting)
	if err != nil {
		host, port = "", strings.TrimPrefix(setting, ":")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return bad("the port is no number from 0 to 65535")
	}
	if host == "" {
		host = "127.0.0.1"
	}
	ip := net.ParseIP(host)
	switch {
	case host == "localhost" || ip != nil && ip.IsLoopback():
	case ip == nil:
		return bad("the host is no IP address and not localhost")
	case !hasToken:
		return bad("others can reach this address: give a token with --http-token-file or " + tokenVar)
	}
	return net.JoinHostPort(host, port), nil
}

const (
	minToken = 16
	maxToken = 4096
)

// httpToken gives the token in force: the environment's, the file's, or one of our own making that is kept for the next start.
func httpToken(ctx context.Context, c config.Config, given string, store *runs.Store, log *slog.Logger) (string, error) {
	if given != "" {
		if len(given) < minToken || len(given) > maxToken || strings.ContainsAny(given, " \t\r\n") {
			return "", invalidSetting("http-token-file", tokenVar, "(not shown)", fmt.Sprintf("%d to %d characters without spaces", minToken, maxToken), errors.New("the token does not fit"))
		}
		return given, nil
	}
	if c.HTTPTokenFile != "" {
		return readToken(c.HTTPTokenFile)
	}
	path := filepath.Join(store.Dir(), ".http-token")
	token, err := keptToken(ctx, store, path)
	if err == nil {
		log.Info("the bearer token is in a file", "file", path)
	}
	return token, err
}

// keptToken reads the token that servers of this runs directory share, and makes it where there is none. Of two that start at once, one
// makes it.
func keptToken(ctx context.Context, store *runs.Store, path string) (string, error) {
	unlock, err := store.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	token, err := readToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	token = rand.Text()
	if err := maybe.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("a token cannot be kept: %w", err)
	}
	return token, nil
}

// readToken reads a file that nobody else may read.
func readToken(path string) (string, error) {
	bad := func(err error) (string, error) {
		return "", errors.Join(invalidSetting("http-token-file", "FLYPROF_HTTP_TOKEN_FILE", path, fmt.Sprintf("a regular file that only its owner may read, with a token of %d to %d characters without spaces", minToken, maxToken), err), err)
	}
	notRegular := errors.New("it is no regular file")
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return bad(notRegular) // opening a pipe would wait for its writer
	}
	f, err := os.Open(path)
	if err != nil {
		return bad(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return bad(err)
	case !info.Mode().IsRegular():
		return bad(notRegular)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return bad(fmt.Errorf("its mode is %v: others may read it (chmod 600)", info.Mode().Perm()))
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxToken+3))
	token := strings.TrimRight(string(raw), "\r\n")
	if err != nil || len(token) < minToken || len(token) > maxToken || strings.ContainsAny(token, " \t\r\n") {
		return bad(errors.New("it holds no such token"))
	}
	return token, nil
}
