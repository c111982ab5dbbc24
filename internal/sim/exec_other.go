//go:build !unix

package sim

import (
	"errors"
	"os"
	"os/exec"
)

func replaceProcess(string, []string, []string) error { return errors.ErrUnsupported }

func signalNumber(*exec.ExitError) int { return 0 }

func terminationSignals() []os.Signal { return []os.Signal{os.Interrupt} }

func signalValue(os.Signal) int { return 15 }

// dieOf gives the exit code that a shell would show; there are no such signals here.
func dieOf(number int) int { return 128 + number }

func ownGroup(*exec.Cmd) {}
