package near

import "testing"

func TestNearest(t *testing.T) {
	valid := []string{"wait_s", "timeout_s", "kernel", "att_target_cu", "shape"}
	for wrong, want := range map[string]string{
		"wait": "wait_s", "timeout": "timeout_s", "kernal": "kernel", "att-target-cu": "att_target_cu", "target_cu": "att_target_cu", "Shape": "shape", "zzz": "", "": "",
	} {
		if got := Nearest(wrong, valid); got != want {
			t.Errorf("%q: %q, want %q", wrong, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"kitten", "sitting", 3}, {"softmax", "softmax", 0}, {"softmux", "softmax", 1}} {
		if got := Distance(c.a, c.b); got != c.want || Distance(c.b, c.a) != c.want {
			t.Errorf("%q %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
