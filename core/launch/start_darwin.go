package launch

import "golang.org/x/sys/unix"

// startTime gives the start in microseconds since the epoch (sysctl kern.proc.pid).
func startTime(pid int) uint64 {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	t := p.Proc.P_starttime
	return uint64(t.Sec)*1_000_000 + uint64(t.Usec)
}
