package launch

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of every orphan among its descendants, so that it can see and reap them
// (prctl(2), PR_SET_CHILD_SUBREAPER).
func Adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// BootID names this boot of the machine: a recorded PID means nothing after a restart.
func BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Identify gives the identity of a process that runs now; Start is 0 when there is none, or only its zombie.
func Identify(pid int) ID {
	st, ok := readStat(pid)
	if !ok || st.state == 'Z' || st.state == 'X' {
		return ID{PID: pid}
	}
	return ID{PID: pid, Start: st.start}
}

type stat struct {
	state      byte
	ppid, pgrp int
	start      uint64
}

// readStat reads /proc/<pid>/stat (proc(5)). The command name may hold spaces and parentheses, so fields count from the
// last ')'.
func readStat(pid int) (stat, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, false
	}
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return stat{}, false
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 {
		return stat{}, false
	}
	ppid, err1 := strconv.Atoi(f[1])
	pgrp, err2 := strconv.Atoi(f[2])
	start, err3 := strconv.ParseUint(f[19], 10, 64)
	return stat{state: f[0][0], ppid: ppid, pgrp: pgrp, start: start}, err1 == nil && err2 == nil && err3 == nil
}

func pids() []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	var out []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// Marked gives the live processes that carry a run's token, this one excepted.
func Marked(token string) []int {
	var out []int
	for _, pid := range pids() {
		if pid != os.Getpid() && marked(pid, token) {
			out = append(out, pid)
		}
	}
	return out
}

func marked(pid int, token string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || len(env) == 0 {
		return false
	}
	want := []byte(TokenVar + "=" + token)
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(entry, want) {
			return true
		}
	}
	return false
}

// killMarked kills every process that carries the token and says whether there was one. A pidfd is held while the mark is
// checked again, so that a number which is reused in between cannot hit another process.
func killMarked(token string) bool {
	if token == "" {
		return false
	}
	found := false
	for _, pid := range Marked(token) {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if marked(pid, token) {
			found = true
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		unix.Close(fd)
	}
	return found
}

// reapAdopted waits for the zombies that this process adopted, the leader excepted: os/exec waits for that one.
func reapAdopted(leader int) {
	self := os.Getpid()
	for _, pid := range pids() {
		st, ok := readStat(pid)
		if ok && st.ppid == self && st.state == 'Z' && pid != leader && st.pgrp == leader {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}
