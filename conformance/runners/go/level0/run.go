package level0

// Cases against a target, some at a time. One that ends is restarted if that is possible, and the other cases go on.

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Status is what came of a case.
type Status string

// The statuses: docs/conformance-format.md says when.
const (
	Pass          Status = "pass"
	Fail          Status = "fail"
	Ended         Status = "stops answering"
	Unlike        Status = "unlike Kafka"
	NotSupported  Status = "not supported"
	NotApplicable Status = "not applicable"
	Allowed       Status = "allowed"
)

// IsWrong tells whether the broker is.
func (status Status) IsWrong() bool { return status == Fail || status == Ended }

// Result is what came of a case, and why. LeftOut are the APIs of looks that the case did without, as they are not offered.
type Result struct {
	Case    *Case
	Status  Status
	Reason  string
	Log     []Exchange
	LeftOut []string
	Seconds float64
}

// Options are what a user may choose. Limit is that of a step; Restart, if it is there, restarts the target, which keeps its
// records; Start starts it again where a case has ended it, and is Restart if it is not given.
type Options struct {
	Limit          time.Duration
	Restart, Start func() error
}

// Connect asks what the target offers.
func Connect(suite *Suite, address string, options Options) (*Target, error) {
	random := make([]byte, 3)
	rand.Read(random)
	if options.Limit == 0 {
		options.Limit = time.Duration(suite.Timing.StepMs) * time.Millisecond
	}
	target := &Target{Address: address, limit: options.Limit, suite: suite, run: fmt.Sprintf("%x", random), restart: options.Restart, start: options.Start}
	if target.start == nil {
		target.start = target.restart
	}
	var err error
	if target.offered, err = target.ask(); err != nil {
		return nil, fmt.Errorf("%s is no broker that can be tested: %w", address, err)
	}
	return target, nil
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

// names are the holes that are known before a case begins; no two cases have the same.
func (t *Target) names() Known {
	number := t.named.Add(1)
	return Known{
		"topic":             fmt.Sprintf("kspec-%s-%04d", t.run, number),
		"topic_dotted":      fmt.Sprintf("kspec.%s.%04d", t.run, number),
		"topic_underscored": fmt.Sprintf("kspec_%s_%04d", t.run, number),
		"group":             fmt.Sprintf("kspec-%s-%04d", t.run, number),
		"now":               time.Now().UnixMilli(),
	}
}

// GoneError is a target that no longer answers, after this case.
type GoneError struct {
	Result Result
	Why    string
}

func (gone *GoneError) Error() string {
	return fmt.Sprintf("the broker no longer answers after case %s: %s", gone.Result.Case.Name, gone.Why)
}

// Run runs one case. A target that does not answer afterwards has the status Ended.
func (t *Target) Run(one *Case) Result {
	if one.NeedsRestart() && t.restart == nil {
		return notRestarted(one)
	}
	result := t.verdict(one, t.restart)
	if err := t.lookAfter(result); err != nil {
		return ended(result, err.Why)
	}
	return result
}

func notRestarted(one *Case) Result {
	return Result{Case: one, Status: NotApplicable, Reason: "it needs a target that can be restarted (--restart COMMAND)"}
}

func ended(result Result, why string) Result {
	if result.Reason != "" {
		why = result.Reason + "; " + why
	}
	result.Status, result.Reason = Ended, why
	return result
}

// lookAfter asks whether the target still answers, where it may not.
func (t *Target) lookAfter(result Result) *GoneError {
	if result.Status != Fail && !result.Case.endsConnections() {
		return nil
	}
	if _, err := t.ask(); err != nil {
		return &GoneError{result, "it no longer answers: " + err.Error()}
	}
	return nil
}

func (t *Target) verdict(one *Case, restart func() error) Result {
	began, known := time.Now(), t.names()
	run, err := t.takeAll(one, known, restart)
	if _, offered := t.version(&t.suite.CleanUp); offered == nil {
		t.takeAll(&Case{Steps: []Step{t.suite.CleanUp}}, known, nil)
	}
	result := Result{Case: one, Status: Pass, Log: run.log, LeftOut: run.leftOut, Seconds: time.Since(began).Seconds()}
	var lacks notSupported
	var cannot notApplicable
	var free liberty
	switch {
	case err == nil:
		return result
	case errors.As(err, &lacks):
		result.Status = NotSupported
	case errors.As(err, &cannot):
		result.Status = NotApplicable
	case errors.As(err, &free):
		result.Status = Unlike
	default:
		result.Status = Fail
	}
	result.Reason = err.Error()
	return result
}

// restarts lets all cases that need a restart wait for each other, so that one serves them all.
type restarts struct {
	lock    sync.Mutex
	running int
	arrived []chan error
	restart func() error
}

func (r *restarts) arrive() error {
	here := make(chan error, 1)
	r.lock.Lock()
	r.arrived = append(r.arrived, here)
	r.lock.Unlock()
	r.leave()
	return <-here
}

func (r *restarts) leave() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.running--
	if r.running > 0 || len(r.arrived) == 0 {
		return
	}
	arrived := r.arrived
	r.arrived, r.running = nil, len(arrived)
	err := r.restart()
	for _, here := range arrived {
		here <- err
	}
}

// suiteRun are cases that are being run.
type suiteRun struct {
	target   *Target
	together int
	tell     func(Result)
	lock     sync.Mutex
	results  map[*Case]Result
	begun    map[*Case]bool
	gone     *GoneError
}

// RunAll runs cases, so many at a time, and tells of each. The order of the results is that of the cases. Cases that restart
// the target come first: it has few topics then. The error is a target that has ended and is not restarted.
func (t *Target) RunAll(cases []*Case, together int, tell func(Result)) ([]Result, error) {
	run := &suiteRun{target: t, together: together, tell: tell, results: map[*Case]Result{}}
	for _, restarting := range []bool{true, false} {
		var left []*Case
		for _, one := range cases {
			if one.NeedsRestart() == restarting {
				left = append(left, one)
			}
		}
		for len(left) > 0 {
			if gone := run.atOnce(left); gone != nil {
				if err := run.findOut(gone, left); err != nil {
					return run.inOrder(cases), err
				}
			}
			left = slices.DeleteFunc(slices.Clone(left), run.isDone)
		}
	}
	return run.inOrder(cases), nil
}

func (run *suiteRun) isDone(one *Case) bool { _, is := run.results[one]; return is }

func (run *suiteRun) inOrder(cases []*Case) (results []Result) {
	for _, one := range cases {
		if result, is := run.results[one]; is {
			results = append(results, result)
		}
	}
	return results
}

func (run *suiteRun) note(result Result) {
	run.lock.Lock()
	defer run.lock.Unlock()
	run.results[result.Case] = result
	run.tell(result)
}

// findOut runs each case alone that ran when the target ended.
func (run *suiteRun) findOut(gone *GoneError, left []*Case) error {
	if run.target.start == nil {
		return fmt.Errorf("%w; the others go on with --start COMMAND", gone)
	}
	var suspects []*Case
	for _, one := range left {
		if run.begun[one] && !run.isDone(one) {
			suspects = append(suspects, one)
		}
	}
	if err := run.target.start(); err != nil {
		return err
	}
	if len(suspects) == 1 {
		run.note(ended(gone.Result, gone.Why))
		return nil
	}
	found := false
	for _, one := range suspects {
		if again := run.atOnce([]*Case{one}); again != nil {
			found = true
			run.note(ended(again.Result, again.Why))
			if err := run.target.start(); err != nil {
				return err
			}
		}
	}
	if !found {
		why := fmt.Sprintf("%s after %d cases that ran together; none of them alone ends it", gone.Why, len(suspects))
		run.note(ended(gone.Result, why))
	}
	return nil
}

// idle is the pause, all in all, with which a case takes no place.
const idle = 5 * time.Second

// atOnce runs cases, all of which restart the target, or none.
func (run *suiteRun) atOnce(cases []*Case) *GoneError {
	run.gone, run.begun = nil, map[*Case]bool{}
	shared := &restarts{running: len(cases), restart: run.target.restart}
	places := make(chan bool, run.together)
	var all sync.WaitGroup
	for _, one := range cases {
		all.Add(1)
		go func(one *Case) {
			defer all.Done()
			if one.pause() >= idle {
				run.one(one, shared, places)
			} else {
				places <- true
				run.one(one, shared, places)
				<-places
			}
			if one.NeedsRestart() {
				shared.leave()
			}
		}(one)
	}
	all.Wait()
	return run.gone
}

func (run *suiteRun) one(one *Case, shared *restarts, places chan bool) {
	run.lock.Lock()
	isGone := run.gone != nil
	if !isGone {
		run.begun[one] = true
	}
	run.lock.Unlock()
	if isGone {
		return // it is run when the target is there again
	}
	if one.NeedsRestart() && run.target.restart == nil {
		run.note(notRestarted(one))
		return
	}
	result := run.target.verdict(one, func() error {
		<-places // whoever waits takes no place
		defer func() { places <- true }()
		return shared.arrive()
	})
	run.lock.Lock()
	isGone = run.gone != nil
	run.lock.Unlock()
	if isGone && result.Status != Pass {
		return
	}
	if gone := run.target.lookAfter(result); gone != nil {
		run.lock.Lock()
		defer run.lock.Unlock()
		if run.gone == nil {
			run.gone = gone
		}
		return
	}
	run.note(result)
}
