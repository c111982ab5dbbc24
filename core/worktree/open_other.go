//go:build !unix

package worktree

const nonBlocking = 0
