package level0

// A result as text, as JUnit, and as JSON.

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
)

// Report is all that is to be said of a case that went wrong. `again` is the command that runs it alone.
func (result *Result) Report(again string) string {
	one := result.Case
	lines := []string{strings.ToUpper(string(result.Status)) + " " + one.Name, "  " + one.Title, "  " + result.Reason, ""}
	lines = append(lines, "  rule     "+one.Rule.Function)
	for _, line := range strings.Split(one.Rule.Doc, "\n") {
		lines = append(lines, strings.TrimRight("           "+line, " "))
	}
	lines = append(lines, "  Kafka    "+one.Kafka, "  promise  "+one.Promise)
	if len(one.Kips) > 0 {
		lines = append(lines, "  KIPs     "+strings.Join(one.Kips, ", "))
	}
	lines = append(lines, "")
	for _, exchange := range result.Log {
		lines = append(lines, fmt.Sprintf("  %s v%d of client %s: %s", exchange.API, exchange.Version, exchange.Client, exchange.Words))
		lines = append(lines, told("sent", exchange.Sent), told("answered", exchange.Answered))
		if exchange.Fields != nil {
			fields, _ := json.Marshal(shownFields(exchange.Fields))
			lines = append(lines, told("fields", string(fields)))
		}
		lines = append(lines, told("wrong", exchange.Wrong))
	}
	lines = append(lines, "  again    "+again, "")
	text := strings.Join(lines, "\n")
	for strings.Contains(text, "\n\x00") {
		text = strings.ReplaceAll(text, "\n\x00", "")
	}
	return text
}

// told is a line of an exchange; one that says nothing is left out.
func told(name, text string) string {
	if text == "" {
		return "\x00"
	}
	const most = 8000
	if len(text) > most {
		text = fmt.Sprintf("%s... (%d)", text[:most], len(text))
	}
	return fmt.Sprintf("    %-8s %s", name, text)
}

// shownFields are the fields of an answer with bytes in hexadecimal digits.
func shownFields(value any) any {
	switch value := value.(type) {
	case Bytes:
		return map[string]string{"hex": fmt.Sprintf("%x", string(value))}
	case map[string]any:
		found := map[string]any{}
		for name, one := range value {
			found[name] = shownFields(one)
		}
		return found
	case []any:
		found := make([]any, len(value))
		for number, one := range value {
			found[number] = shownFields(one)
		}
		return found
	}
	return value
}

type junitCase struct {
	Name      string    `xml:"name,attr"`
	Classname string    `xml:"classname,attr"`
	Time      string    `xml:"time,attr"`
	Failure   *junitWhy `xml:"failure"`
	Skipped   *junitWhy `xml:"skipped"`
	Output    string    `xml:"system-out,omitempty"`
}

type junitWhy struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

// JUnit is a file for continuous integration: a test suite for each subject.
func JUnit(results []Result, again func(*Result) string) ([]byte, error) {
	var suites struct {
		XMLName xml.Name      `xml:"testsuites"`
		Suites  []*junitSuite `xml:"testsuite"`
	}
	known := map[string]*junitSuite{}
	for number := range results {
		one := &results[number]
		suite := known[one.Case.Subject]
		if suite == nil {
			suite = &junitSuite{Name: "kspec.level-0." + one.Case.Subject}
			known[one.Case.Subject] = suite
			suites.Suites = append(suites.Suites, suite)
		}
		told := junitCase{Name: one.Case.Name, Classname: "kspec." + one.Case.Subject, Time: fmt.Sprintf("%.3f", one.Seconds)}
		suite.Tests++
		switch {
		case one.Status.IsWrong():
			suite.Failures++
			told.Failure = &junitWhy{one.Reason, string(one.Status), one.Report(again(one))}
		case one.Status == Unlike:
			told.Output = string(one.Status) + ": " + one.Reason
		case one.Status != Pass:
			suite.Skipped++
			told.Skipped = &junitWhy{Message: string(one.Status) + ": " + one.Reason}
		}
		suite.Cases = append(suite.Cases, told)
	}
	data, err := xml.MarshalIndent(suites, "", "  ")
	return append([]byte(xml.Header), append(data, '\n')...), err
}

// JSON is a file for programs: the counts, and each case with its exchanges unless it passed.
func JSON(results []Result, target *Target, again func(*Result) string) ([]byte, error) {
	counts, cases := map[Status]int{}, []map[string]any{}
	for number := range results {
		one := &results[number]
		counts[one.Status]++
		told := map[string]any{"name": one.Case.Name, "status": one.Status, "seconds": one.Seconds}
		if one.Status != Pass {
			told["title"], told["reason"], told["rule"] = one.Case.Title, one.Reason, one.Case.Rule.Function
			told["kips"], told["replay"] = one.Case.Kips, again(one)
			for number := range one.Log {
				one.Log[number].Fields = shownFields(one.Log[number].Fields)
			}
			told["log"] = one.Log
		}
		cases = append(cases, told)
	}
	found := map[string]any{"target": target.Address, "run": target.run, "suite": target.suite.Suite, "counts": counts, "cases": cases}
	data, err := json.MarshalIndent(found, "", " ")
	return append(data, '\n'), err
}
