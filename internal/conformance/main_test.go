package main

import "testing"

// TestListen: a server that asks for no token is reached from this host alone.
func TestListen(t *testing.T) {
	t.Parallel()
	for _, address := range []string{":0", "0.0.0.0:0"} {
		if l, err := listen(address); err == nil {
			t.Errorf("%s is served at %s", address, l.Addr())
			l.Close()
		}
	}
	l, err := listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// TestSeal: a state that was changed, or made elsewhere, names no round.
func TestSeal(t *testing.T) {
	t.Parallel()
	if round, err := unseal(seal(1)); err != nil || round != 1 {
		t.Errorf("%d %v", round, err)
	}
	for _, state := range []string{"", "1", "1.", seal(1) + "0", "0" + seal(1)} {
		if round, err := unseal(state); err == nil {
			t.Errorf("%q is round %d", state, round)
		}
	}
}
