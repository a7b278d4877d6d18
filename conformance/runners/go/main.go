// A runner for the cases of level 0. It needs no other program, and the cases are inside: see docs/conformance-format.md.
//
//	kspec-runner --bootstrap-server HOST:PORT [--case NAME] [--restart COMMAND] [--junit FILE] …
//
// It prints a line for each case: its status, its name, and why, with tabs between them. What is to be said of a case that goes
// wrong is on standard error. Exit status: 0 nothing fails, 1 something does, 2 bad usage, 3 the target has died or does not
// speak the protocol.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"kspec-runner/level0"
)

const restartLimit = 180 * time.Second

var (
	cases    = flag.String("cases", "", "a folder or an archive of `kspec conformance generate`, in place of the cases inside")
	address  = flag.String("bootstrap-server", "", "HOST:PORT of the broker under test")
	wanted   = flag.String("case", "", "run this case, or those whose names begin with it")
	choice   = flag.String("versions", "newest", "of the requests, among those that both sides know: newest, oldest or all")
	limit    = flag.Duration("timeout", 30*time.Second, "for each step")
	together = flag.Int("together", 16, "cases at a time")
	command  = flag.String("restart", "", "a shell command that restarts the broker, which keeps its records: for older leader epochs, and where a case ends it")
	start    = flag.String("start", "", "a shell command that starts the broker again where a case ends it; its records may be gone")
	allow    = flag.String("allow", "", "a file of failures that are known: a name and a reason on each line")
	strict   = flag.Bool("strict", false, "status 1 also if a case was not run, or if an allowed failure is none")
	junit    = flag.String("junit", "", "write the results for continuous integration")
	asJSON   = flag.String("json", "", "write the results for programs")
	list     = flag.Bool("list", false, "print the names of the cases, and run none")
	version  = flag.Bool("version", false, "print which suite this is")
)

func main() {
	flag.Parse() // ends with status 2 if the usage is bad
	suite := suite()
	chosen := suite.Named(*wanted)
	switch {
	case flag.NArg() > 0:
		end(2, fmt.Sprintf("%q is no option", flag.Arg(0)))
	case *version:
		fmt.Println(suite.Title())
		return
	case len(chosen) == 0:
		end(2, fmt.Sprintf("there is no case %q; --list tells all of them", *wanted))
	case *list:
		for _, one := range chosen {
			fmt.Println(one.Name)
		}
		return
	}
	if _, port, err := net.SplitHostPort(*address); err != nil || port == "" {
		end(2, fmt.Sprintf("--bootstrap-server %q is no HOST:PORT", *address))
	}
	if *together < 1 || *limit <= 0 || !slices.Contains(level0.Choices, *choice) {
		end(2, "--together is 1 or more, --timeout is above 0, and --versions is newest, oldest or all")
	}
	allowed := allowed(suite)
	target, err := level0.Connect(suite, *address, level0.Options{Limit: *limit, Restart: restarting(suite, *command), Start: restarting(suite, *start)})
	if err != nil {
		end(3, err.Error())
	}
	os.Exit(run(target, target.InVersions(chosen, *choice), allowed))
}

func end(status int, why string) {
	fmt.Fprintln(os.Stderr, strings.ReplaceAll(why, "\n", " "))
	os.Exit(status)
}

func suite() *level0.Suite {
	load := level0.Inside
	if *cases != "" {
		load = func() (*level0.Suite, error) { return level0.Load(*cases) }
	}
	found, err := load()
	if err != nil {
		end(2, err.Error())
	}
	return found
}

// restarting gives what restarts the target: the command, and then as many questions as it takes until it answers.
func restarting(suite *level0.Suite, command string) func() error {
	if command == "" {
		return nil
	}
	return func() error {
		if err := exec.Command("sh", "-c", command).Run(); err != nil {
			return fmt.Errorf("the command that starts the broker: %w", err)
		}
		for until := time.Now().Add(restartLimit); ; time.Sleep(200 * time.Millisecond) {
			_, err := level0.Connect(suite, *address, level0.Options{Limit: *limit})
			if err == nil || time.Now().After(until) {
				return err
			}
		}
	}
}

// allowed reads the failures that are known: a name on each line, and after a space the reason.
func allowed(suite *level0.Suite) map[string]string {
	found := map[string]string{}
	if *allow == "" {
		return found
	}
	data, err := os.ReadFile(*allow)
	if err != nil {
		end(2, err.Error())
	}
	for _, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, _ := strings.Cut(line, " ")
		if named := suite.Named(name); len(named) != 1 || named[0].Name != name {
			end(2, fmt.Sprintf("there is no case %q, which is allowed to fail", name))
		}
		if found[name] = strings.TrimSpace(reason); found[name] == "" {
			end(2, fmt.Sprintf("%s: case %s is allowed to fail, and no reason is given", *allow, name))
		}
	}
	return found
}

func run(target *level0.Target, chosen []*level0.Case, allowed map[string]string) int {
	again := func(result *level0.Result) string {
		given := ""
		if *command != "" {
			given += fmt.Sprintf(" --restart '%s'", strings.ReplaceAll(*command, "'", `'\''`))
		}
		if *choice != "newest" {
			given += " --versions " + *choice
		}
		return fmt.Sprintf("kspec-runner --bootstrap-server %s --case %s%s", *address, result.Case.PlainName(), given)
	}
	results, err := target.RunAll(chosen, *together, func(result level0.Result) {
		if reason, is := allowed[result.Case.PlainName()]; is && result.Status.IsWrong() {
			result.Status, result.Reason = level0.Allowed, reason+": "+result.Reason
		}
		fmt.Printf("%s\t%s\t%s\n", result.Status, result.Case.Name, strings.ReplaceAll(result.Reason, "\n", " "))
		if result.Status.IsWrong() {
			fmt.Fprintln(os.Stderr, result.Report(again(&result)))
		}
	})
	counts, stale, looks := map[level0.Status]int{}, 0, map[string]int{}
	for number := range results {
		one := &results[number]
		reason, is := allowed[one.Case.PlainName()]
		if is && one.Status.IsWrong() {
			one.Status, one.Reason = level0.Allowed, reason+": "+one.Reason
		} else if is && one.Status == level0.Pass && *choice == "newest" {
			stale++
			fmt.Fprintf(os.Stderr, "allowed to fail, and passes: %s\n", one.Case.Name)
		}
		counts[one.Status]++
		for _, api := range one.LeftOut {
			if one.Status == level0.Pass {
				looks[api]++
			}
		}
	}
	for api, count := range looks {
		fmt.Fprintf(os.Stderr, "%d pass without a last look: %s is not offered\n", count, api)
	}
	write(*junit, func() ([]byte, error) { return level0.JUnit(results, again) })
	write(*asJSON, func() ([]byte, error) { return level0.JSON(results, target, again) })
	var told []string
	for _, status := range []level0.Status{level0.Pass, level0.Fail, level0.Ended, level0.Unlike, level0.NotSupported, level0.NotApplicable, level0.Allowed} {
		if counts[status] > 0 {
			told = append(told, fmt.Sprintf("%d %s", counts[status], status))
		}
	}
	fmt.Fprintf(os.Stderr, "%d cases: %s\n", len(results), strings.Join(told, ", "))
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 3
	case counts[level0.Fail]+counts[level0.Ended] > 0:
		return 1
	case *strict && (counts[level0.NotSupported]+counts[level0.NotApplicable]+stale+len(looks) > 0):
		return 1
	}
	return 0
}

func write(file string, content func() ([]byte, error)) {
	if file == "" {
		return
	}
	data, err := content()
	if err = errors.Join(err, os.WriteFile(file, data, 0o644)); err != nil {
		end(2, err.Error())
	}
}
