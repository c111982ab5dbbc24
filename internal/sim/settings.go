package sim

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Settings are the switches of the simulated GPU. They reach the stand-ins through the environment.
type Settings struct {
	// Arch is "gfx950" (default) or "gfx942".
	Arch string
	// Replay is a recorded ui_output directory that ATT jobs hand out instead of an invented trace.
	Replay string
	// Faults are what goes wrong.
	Faults []Fault
	// Seed decides everything random; the same seed gives the same run.
	Seed uint64
}

// Fault is one fault of FaultNames. Phase limits it to "discover", "att" or "pmc"; empty is every phase.
type Fault struct {
	Name  string
	Value string
	Phase string
}

// The environment variables of the switches.
const (
	envSimulate = "FLYPROF_SIMULATE"
	envReplay   = "FLYPROF_REPLAY"
	envFault    = "FLYPROF_FAULT"
	envSeed     = "FLYPROF_SEED"
)

// FromEnv reads the switches: FLYPROF_SIMULATE (an architecture or a truth value), FLYPROF_REPLAY, FLYPROF_FAULT
// ([phase:]name[=value], comma separated) and FLYPROF_SEED. An unknown architecture, fault or phase is an error.
func FromEnv(environ []string) (Settings, error) {
	env := newEnvironment(environ)
	s := Settings{Arch: env.get(envSimulate), Replay: env.get(envReplay), Seed: 1}
	switch strings.ToLower(s.Arch) {
	case "", "1", "true", "yes", "on":
		s.Arch = "gfx950"
	}
	if _, ok := gpus[s.Arch]; !ok {
		return s, fmt.Errorf("%s is %q: the simulated GPUs are gfx950 and gfx942", envSimulate, s.Arch)
	}
	if text := env.get(envSeed); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return s, fmt.Errorf("%s is %q: want a whole number", envSeed, text)
		}
		s.Seed = n
	}
	var err error
	s.Faults, err = ParseFaults(env.get(envFault))
	return s, err
}

// ParseFaults reads "[phase:]name[=value],...".
func ParseFaults(text string) ([]Fault, error) {
	var out []Fault
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		var f Fault
		if phase, rest, ok := strings.Cut(word, ":"); ok {
			if !slices.Contains([]string{phaseDiscover, phaseATT, phasePMC}, phase) {
				return nil, fmt.Errorf("fault %q: the phases are discover, att and pmc", word)
			}
			f.Phase, word = phase, rest
		}
		f.Name, f.Value, _ = strings.Cut(word, "=")
		if !slices.ContainsFunc(faults, func(i FaultInfo) bool { return i.Name == f.Name }) {
			return nil, fmt.Errorf("no fault is named %q; there are %s", f.Name, strings.Join(faultWords(), ", "))
		}
		out = append(out, f)
	}
	return out, nil
}

// Environ gives the switches as K=V, for the environment of the stand-ins.
func (s Settings) Environ() []string {
	words := make([]string, 0, len(s.Faults))
	for _, f := range s.Faults {
		word := f.Name
		if f.Value != "" {
			word += "=" + f.Value
		}
		if f.Phase != "" {
			word = f.Phase + ":" + word
		}
		words = append(words, word)
	}
	arch := s.Arch
	if arch == "" {
		arch = "gfx950"
	}
	out := []string{envSimulate + "=" + arch, envSeed + "=" + strconv.FormatUint(s.Seed, 10)}
	if s.Replay != "" {
		replay := s.Replay
		if abs, err := filepath.Abs(replay); err == nil {
			replay = abs // the stand-ins run in other directories
		}
		out = append(out, envReplay+"="+replay)
	}
	if len(words) > 0 {
		out = append(out, envFault+"="+strings.Join(words, ","))
	}
	return out
}

// fault says whether a fault applies in a phase, and its value.
func (s Settings) fault(name, phase string) (string, bool) {
	for _, f := range s.Faults {
		if f.Name == name && (f.Phase == "" || f.Phase == phase) {
			return f.Value, true
		}
	}
	return "", false
}

func (s Settings) has(name, phase string) bool {
	_, ok := s.fault(name, phase)
	return ok
}

// environment is K=V pairs by name; the last of equal names wins, as in execve's readers.
type environment struct{ values map[string]string }

func newEnvironment(environ []string) environment {
	e := environment{map[string]string{}}
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k != "" {
			e.values[k] = v
		}
	}
	return e
}

func (e environment) get(name string) string { return e.values[name] }

func (e environment) truth(name string) bool {
	switch strings.ToLower(e.values[name]) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

func (e environment) set(name, value string) { e.values[name] = value }

// list gives the pairs sorted by name.
func (e environment) list() []string {
	out := make([]string, 0, len(e.values))
	for k, v := range e.values {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return out
}
