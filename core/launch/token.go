package launch

import (
	"crypto/rand"
	"encoding/hex"
)

// NewToken makes a token that no other run has (128 random bits).
func NewToken() string { return randomHex() }

func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails: it ends the program instead
	return hex.EncodeToString(b[:])
}
