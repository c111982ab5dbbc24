package httpd

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/flyprof/flyprof-mcp/internal/wire"
)

// serve serves the bench by its own Serve, with all limits of the connection, and gives the address.
func (b *bench) serve(certFile, keyFile string) string {
	b.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, end := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- b.handler.Serve(ctx, l, certFile, keyFile) }()
	b.t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
	b.URL = "http://" + l.Addr().String()
	return l.Addr().String()
}

// dial sends the beginning of a request.
func (b *bench) dial(address, text string) net.Conn {
	b.t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		b.t.Fatal(err)
	}
	return c
}

// TestSlowBody: who announces a body and does not send it is let go, with a token or without.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{BodyTimeout: 100 * time.Millisecond})
	address := b.serve("", "")
	for name, headers := range map[string]string{
		"without a token": "",
		"with the token":  "Authorization: Bearer " + testToken + "\r\nContent-Type: application/json\r\n",
	} {
		slow := b.dial(address, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"+headers+"\r\n{")
		if rest, err := io.ReadAll(slow); err != nil || strings.Contains(string(rest), " 200 ") { // it returns when the server closes
			t.Errorf("%s: %q %v", name, rest, err)
		}
	}
}

// TestStalledReader: a call whose client does not read what it asked for ends.
func TestStalledReader(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{WriteTimeout: 100 * time.Millisecond})
	b.handler.srv.AddTool(mcp.NewTool("flood"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for n := 1.0; ctx.Err() == nil; n++ {
			wire.Progress(ctx)(n, 0, strings.Repeat("x", 400))
		}
		b.ended <- context.Cause(ctx)
		return mcp.NewToolResultText("late"), nil
	})
	address := b.serve("", "")
	id, body := b.session(), callOf(1, "flood", "{}")
	b.dial(address, fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s: %s\r\nContent-Length: %d\r\n\r\n%s",
		testToken, headerSession, id, len(body), body))
	if cause := <-b.ended; cause == nil {
		t.Error("the call did not end early")
	}
	b.session() // others are served
}

// TestLastingStreams: the limits on reading and writing do not cut what lasts.
func TestLastingStreams(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{BodyTimeout: 30 * time.Millisecond, WriteTimeout: 30 * time.Millisecond, KeepAlive: 10 * time.Millisecond})
	b.serve("", "")
	id := b.session()
	for name, request := range map[string]*http.Request{
		"a call":         b.request("POST", Endpoint, callOf(1, "wait", "{}"), headerSession, id),
		"a stream":       b.request("GET", Endpoint, "", headerSession, id),
		"a subscription": b.modern(1, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`),
	} {
		res, err := http.DefaultClient.Do(request)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %v %+v", name, err, res)
		}
		lines := bufio.NewScanner(res.Body)
		for comments := 0; comments < 20; { // several times the limits
			if !lines.Scan() {
				t.Errorf("%s ended after %d comments: %v", name, comments, lines.Err())
				break
			}
			if strings.HasPrefix(lines.Text(), ":") {
				comments++
			}
		}
		res.Body.Close()
	}
	if cause := <-b.ended; cause == nil {
		t.Error("the call did not end with its client")
	}
}

// TestMessagesInFlight bounds the memory for messages: what is not said to be short counts as the longest.
func TestMessagesInFlight(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{MaxBody: 1000, MaxInFlightBytes: 1500})
	id := b.session()
	long := callOf(1, "wait", `{"text":"`+strings.Repeat("x", 700)+`"}`)
	ctx, vanish := context.WithCancel(t.Context())
	go func() {
		if res, err := b.Client().Do(b.request("POST", Endpoint, long, headerSession, id).WithContext(ctx)); err == nil {
			res.Body.Close()
		}
	}()
	<-b.started
	chunked := b.request("POST", Endpoint, callOf(2, "echo", "{}"), headerSession, id)
	chunked.ContentLength = -1
	for name, r := range map[string]*http.Request{
		"a long one":           b.request("POST", Endpoint, strings.Replace(long, `"id":1`, `"id":3`, 1), headerSession, id),
		"one of unsaid length": chunked,
	} {
		if status, header, _ := b.send(r); status != 503 || header.Get("Retry-After") == "" {
			t.Errorf("%s: %d", name, status)
		}
	}
	if status, _, body := b.send(b.request("POST", Endpoint, callOf(4, "echo", `{"text":"fits"}`), headerSession, id)); status != 200 || !strings.Contains(body, "fits") {
		t.Errorf("a short one: %d %s", status, body)
	}
	vanish()
	<-b.ended
}

// TestIdleSessionsGo: the sessions of clients that do not come back end by themselves.
func TestIdleSessionsGo(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{IdleSession: 10 * time.Millisecond})
	b.serve("", "")
	if status, _, body := b.send(b.request("POST", Endpoint, hello)); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	for began := time.Now(); b.handler.Sessions() != 0; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%d sessions are left", b.handler.Sessions())
		}
	}
}

// TestTLS: with a certificate TLS 1.2 or later is spoken, and nothing else.
func TestTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, roots := certificate(t)
	b := newBench(t, Options{})
	address := b.serve(certFile, keyFile)
	for _, c := range []struct {
		version uint16
		served  bool
	}{{tls.VersionTLS11, false}, {tls.VersionTLS12, true}, {tls.VersionTLS13, true}} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10, MaxVersion: c.version}, ForceAttemptHTTP2: true}}
		b.URL = "https://" + address
		res, err := client.Do(b.request("POST", Endpoint, hello))
		if err == nil {
			res.Body.Close()
		}
		if served := err == nil && res.StatusCode == 200 && res.Header.Get(headerSession) != ""; served != c.served {
			t.Errorf("%s: %v %+v", tls.VersionName(c.version), err, res)
		}
		client.CloseIdleConnections()
	}
	if rest, err := io.ReadAll(b.dial(address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")); err != nil || strings.Contains(string(rest), " 200 ") {
		t.Errorf("clear text: %q %v", rest, err)
	}
}

// certificate writes a certificate for 127.0.0.1 that signs itself.
func certificate(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certFile, keyFile = write("cert.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", keyDER)
	roots = x509.NewCertPool()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(cert)
	return certFile, keyFile, roots
}

// TestObserve: what is refused is counted too, and nothing that is told is of the client's choosing.
func TestObserve(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 10)
	b := newBench(t, Options{Observe: func(endpoint, method string, status int) { seen <- fmt.Sprint(endpoint, " ", method, " ", status) }})
	for want, r := range map[string]*http.Request{
		"/mcp POST 200":    b.request("POST", Endpoint, hello),
		"/mcp POST 401":    b.request("POST", Endpoint, hello, "Authorization", "Bearer x"),
		"/healthz GET 403": b.request("GET", Health, "", "Host", "evil.example"),
		"other GET 404":    b.request("GET", "/admin", ""),
	} {
		b.send(r)
		if got := <-seen; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// FuzzChecks: whatever the headers hold, only the token and a known Host and Origin lead to the endpoint.
func FuzzChecks(f *testing.F) {
	f.Add("localhost:8080", "", "Bearer "+testToken)
	f.Add("[::1]:1", "http://localhost", "bearer  "+testToken+" ")
	f.Add("evil.example", "null", "Bearer")
	f.Add("127.0.0.1.evil.example", "http://localhost@evil.example", "Basic "+testToken)
	f.Add("LOCALHOST", "https://[::1]:3/", "Bearer "+testToken[1:])
	h := New(nil, Options{Token: testToken})
	f.Fuzz(func(t *testing.T, host, origin, authorization string) {
		r := httptest.NewRequest("PUT", "http://localhost"+Endpoint, nil) // a verb that the endpoint itself refuses, with 405
		r.Host = host
		r.Header = http.Header{"Authorization": {authorization}}
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		local := func(name string) bool {
			name = strings.ToLower(name)
			return strings.HasPrefix(name, "localhost") || strings.HasPrefix(name, "127.") || strings.Contains(name, ":") || strings.HasPrefix(name, "[")
		}
		_, of, _ := strings.Cut(origin, "://")
		switch {
		case w.Code == 403:
		case !local(host) || origin != "" && !local(of) || strings.ContainsAny(of, "@/"):
			t.Errorf("%d for Host %q, Origin %q", w.Code, host, origin)
		case w.Code == 401:
		case w.Code != 405 || !strings.Contains(authorization, testToken):
			t.Errorf("%d for %q", w.Code, authorization)
		}
	})
}
