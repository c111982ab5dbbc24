package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

func flags(kv map[string]string) Source {
	return func(s Setting) (Given, bool) {
		v, ok := kv[s.Flag]
		return Given{[]string{v}, FromFlag}, ok
	}
}

func env(kv map[string]string) func(string) string { return func(k string) string { return kv[k] } }

func TestFlagsBeatEnvironmentBeatsDefaults(t *testing.T) {
	e := env(map[string]string{"FLYPROF_GPU": "3", "FLYPROF_STOP_GRACE": "5", "HOME": "/home/u", "FLYPROF_ALLOW_PATH": "/a:/b"})
	c, err := Resolve(e, flags(map[string]string{"gpu": "7"}), FromEnv(e))
	if err != nil {
		t.Fatal(err)
	}
	if c.GPU != 7 || c.StopGraceS != 5 || c.LogLevel != "info" || len(c.AllowPath) != 2 {
		t.Errorf("resolved %+v", c)
	}
	if c.RunsDir != "/home/u/.local/share/flyprof/runs" {
		t.Errorf("runs dir %q", c.RunsDir)
	}
}

func TestReplayAndFaultImplySimulate(t *testing.T) {
	for _, name := range []string{"FLYPROF_REPLAY", "FLYPROF_FAULT"} {
		e := env(map[string]string{name: "x", "HOME": "/h"})
		if c, err := Resolve(e, FromEnv(e)); err != nil || c.Simulate != "gfx950" {
			t.Errorf("%s: simulate %q, %v", name, c.Simulate, err)
		}
	}
}

func TestBadValuesNameFlagValueAndWhatIsAllowed(t *testing.T) {
	for flag, value := range map[string]string{"gpu": "-1", "stop-grace": "x", "log-level": "loud", "simulate": "gfx90a", "toolsets": "capture,x", "read-only": "maybe", "pass-env": "A,B=1", "allow-any-invocation": "some", "seed": "1e9"} {
		e := env(map[string]string{"HOME": "/h"})
		_, err := Resolve(e, flags(map[string]string{flag: value}), FromEnv(e))
		var ee *envelope.Error
		if !errors.As(err, &ee) || ee.Code != envelope.BadArgs {
			t.Errorf("--%s=%s: error %v, want BAD_ARGS", flag, value, err)
			continue
		}
		if ee.Evidence.Field != "--"+flag || !strings.Contains(value, ee.Evidence.Value) || ee.Evidence.Allowed == "" {
			t.Errorf("--%s=%s: evidence %+v", flag, value, ee.Evidence)
		}
	}
}

func TestNoHomeIsNamed(t *testing.T) {
	e := env(nil)
	if _, err := Resolve(e, FromEnv(e)); envelope.CodeOf(err) != envelope.BadArgs || !strings.Contains(err.Error(), "--runs-dir") {
		t.Errorf("error %v", err)
	}
}
