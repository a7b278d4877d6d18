// Each case as a test of its own, in a project in Go: go test -run 'TestConformance/frames'
package example

import (
	"os"
	"strings"
	"testing"
	"time"

	"kspec-runner/level0"
)

// startBroker stands for what starts your broker; here it was started before, and BROKER is its address.
func startBroker(t *testing.T) string {
	address := os.Getenv("BROKER")
	if address == "" {
		t.Skip("BROKER=HOST:PORT is the broker under test")
	}
	return address
}

// knownFailures are names with their reasons.
func knownFailures(t *testing.T) map[string]string {
	data, err := os.ReadFile("../known-failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for _, line := range strings.Split(string(data), "\n") {
		if name, reason, is := strings.Cut(line, " "); is && name != "#" {
			known[name] = reason
		}
	}
	return known
}

func TestConformance(t *testing.T) {
	suite, err := level0.Inside()
	if err != nil {
		t.Fatal(err)
	}
	target, err := level0.Connect(suite, startBroker(t), level0.Options{Limit: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	known := knownFailures(t)
	for _, one := range suite.Cases {
		t.Run(one.Name, func(t *testing.T) {
			result := target.Run(one)
			reason, isKnown := known[one.Name]
			switch {
			case result.Status.IsWrong() && isKnown:
				t.Skipf("known (%s): %s", reason, result.Reason)
			case result.Status.IsWrong():
				t.Error(result.Report("go test -run 'TestConformance/" + one.Name + "'"))
			case result.Status == level0.Pass && isKnown:
				t.Error("it passes, and known-failures.txt says that it fails")
			case result.Status != level0.Pass:
				t.Skipf("%s: %s", result.Status, result.Reason)
			}
		})
	}
}
