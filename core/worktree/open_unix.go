//go:build unix

package worktree

import "syscall"

// nonBlocking: a FIFO that was put in a file's place cannot make the open wait.
const nonBlocking = syscall.O_NONBLOCK
