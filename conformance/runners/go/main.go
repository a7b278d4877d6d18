// A runner for the cases that `kspec conformance generate` writes. It needs Go's standard library and nothing else, and
// knows nothing of Kafka's messages: requests come as bytes, and answers are read by the layouts in index.json.
//
//	go run . --cases DIR --bootstrap-server HOST:PORT [--case NAME] [--versions newest] [--timeout 10s] [--together 8]
//
// It prints a line for each case: pass, fail, not supported or not applicable, the name, and why. Exit status: 0 nothing
// fails, 1 something does, 2 bad usage, 3 the target has died or does not speak the protocol.
package main

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const format = 3

// Suite is index.json.
type Suite struct {
	Format  int
	Cases   []struct{ File, Name string }
	Probe   Step
	CleanUp Step `json:"clean_up"`
	Layouts map[string]map[string][]Field
}

func main() {
	folder := flag.String("cases", "", "the folder that `kspec conformance generate` wrote")
	address := flag.String("bootstrap-server", "", "HOST:PORT of the broker under test")
	wanted := flag.String("case", "", "run this case, or those whose names begin with it")
	choice := flag.String("versions", "newest", "of the requests, among those that both sides know: newest, oldest or all")
	limit := flag.Duration("timeout", 10*time.Second, "for each step")
	together := flag.Int("together", 8, "cases at a time")
	flag.Parse() // ends with status 2 if the usage is bad
	if *folder == "" || !strings.Contains(*address, ":") || *together < 1 || !slices.Contains(choices, *choice) || flag.NArg() > 0 {
		end(2, "usage: --cases DIR --bootstrap-server HOST:PORT [--case NAME] [--versions newest|oldest|all] [--timeout 10s] [--together 8]")
	}
	suite, cases := load(*folder, *wanted)
	target := &Target{*address, *limit, nil, suite}
	var err error
	if target.offered, err = target.ask(); err != nil {
		end(3, fmt.Sprintf("%s is no broker that can be tested: %v", *address, err))
	}
	os.Exit(target.runAll(target.inVersions(cases, *choice), *together))
}

func end(status int, why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(status)
}

// load reads the index, and the cases whose names begin as wanted; a name in full means that case alone.
func load(folder, wanted string) (*Suite, []*Case) {
	suite := &Suite{}
	read(filepath.Join(folder, "index.json"), suite)
	if suite.Format != format {
		end(2, fmt.Sprintf("the cases have format %d, and this runner knows %d", suite.Format, format))
	}
	var cases []*Case
	for _, entry := range suite.Cases {
		if entry.Name == wanted {
			cases = nil
		}
		if strings.HasPrefix(entry.Name, wanted) {
			one := &Case{}
			read(filepath.Join(folder, entry.File), one)
			cases = append(cases, one)
		}
		if entry.Name == wanted {
			break
		}
	}
	if cases == nil {
		end(2, fmt.Sprintf("there is no case %q", wanted))
	}
	return suite, cases
}

func read(file string, into any) {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		end(2, err.Error())
	}
}

// ask finds out which versions the target offers.
func (t *Target) ask() (map[int][2]int, error) {
	connection, err := t.connect()
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	return t.probe(connection)
}

// probe sends ApiVersions, and reads the answer.
func (t *Target) probe(connection *Connection) (map[int][2]int, error) {
	connection.correlation++
	version := fmt.Sprint(t.suite.Probe.Versions[0])
	body, _ := Known{"correlation_id": connection.correlation}.render(t.suite.Probe.Bytes[version])
	if err := connection.send(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), t.limit); err != nil {
		return nil, inWords(err)
	}
	frame, err := connection.receive(connection.correlation, t.limit)
	if err != nil {
		return nil, err
	}
	answer, err := readAnswer(t.suite.Layouts[t.suite.Probe.API][version], frame)
	if err != nil {
		return nil, err
	}
	if answer["error_code"] != int64(0) {
		return nil, fmt.Errorf("it answers %s with error %v", t.suite.Probe.API, answer["error_code"])
	}
	offered := map[int][2]int{}
	list, _ := answer["api_keys"].([]any)
	for _, entry := range list {
		one := entry.(map[string]any)
		offered[int(one["api_key"].(int64))] = [2]int{int(one["min_version"].(int64)), int(one["max_version"].(int64))}
	}
	return offered, nil
}

// runAll runs some cases at a time, each with names of its own; the exit status.
func (t *Target) runAll(cases []*Case, together int) int {
	random := make([]byte, 3)
	rand.Read(random)
	counts := map[string]int{}
	var lock sync.Mutex
	var all sync.WaitGroup
	places := make(chan bool, together)
	for number, one := range cases {
		all.Add(1)
		places <- true
		go func(one *Case, known Known) {
			defer func() { <-places; all.Done() }()
			status, reason := t.verdict(one, known)
			lock.Lock()
			defer lock.Unlock()
			counts[status]++
			fmt.Printf("%s\t%s\t%s\n", status, one.Name, reason)
			if status == "fail" {
				if _, err := t.ask(); err != nil {
					end(3, fmt.Sprintf("%s no longer answers after case %s: %v", t.address, one.Name, err))
				}
			}
		}(one, names(fmt.Sprintf("%x", random), number))
	}
	all.Wait()
	fmt.Fprintf(os.Stderr, "%d cases: %v\n", len(cases), counts)
	if counts["fail"] > 0 {
		return 1
	}
	return 0
}

// names are the holes that are known before a case begins.
func names(run string, number int) Known {
	return Known{
		"topic":             fmt.Sprintf("kspec-%s-%04d", run, number),
		"topic_dotted":      fmt.Sprintf("kspec.%s.%04d", run, number),
		"topic_underscored": fmt.Sprintf("kspec_%s_%04d", run, number),
		"group":             fmt.Sprintf("kspec-%s-%04d", run, number),
		"now":               time.Now().UnixMilli(),
	}
}

func (t *Target) verdict(one *Case, known Known) (status, reason string) {
	for _, step := range one.Steps {
		if step.Restart {
			return "not applicable", "this runner restarts no target"
		}
	}
	err := t.run(one, known)
	if _, offered := t.version(&t.suite.CleanUp); offered == nil {
		t.run(&Case{Steps: []Step{t.suite.CleanUp}}, known)
	}
	var skipped notSupported
	switch {
	case err == nil:
		return "pass", ""
	case errors.As(err, &skipped):
		return "not supported", err.Error()
	}
	return "fail", err.Error()
}
