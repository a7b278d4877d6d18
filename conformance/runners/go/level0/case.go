package level0

// One case: its steps in order, each client on a connection of its own.
//
// What is exported is for tests in Go: Inside or Load gives the suite, Connect a target, and Target.Run the result of a case.

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Case is a file of `kspec conformance generate`.
type Case struct {
	Name, Title, Subject, Kafka, Promise string
	Kips                                 []string
	Rule                                 struct{ Function, Doc string }
	Steps                                []Step
	plain                                string // the name without the versions of its requests, if those were chosen
}

// PlainName is the name of the case, also where it is run in chosen versions of its requests.
func (one *Case) PlainName() string {
	if one.plain != "" {
		return one.plain
	}
	return one.Name
}

// NeedsRestart tells whether the case restarts the target.
func (one *Case) NeedsRestart() bool {
	return slices.ContainsFunc(one.Steps, func(step Step) bool { return step.Restart })
}

func (one *Case) endsConnections() bool {
	return slices.ContainsFunc(one.Steps, func(step Step) bool { return step.Ending == "closed" })
}

// pause is the time for which a case waits before its requests, all in all.
func (one *Case) pause() (found time.Duration) {
	for _, step := range one.Steps {
		found += time.Duration(step.PauseMs) * time.Millisecond
	}
	return found
}

// Step is a request, and what must come of it.
type Step struct {
	Client, API, Ending string
	Words, Outcome      string
	Request             any
	Key                 int
	Versions            []int
	Bytes               map[string][]any
	Raw, Restart        bool
	PauseMs             int64 `json:"pause_ms"`      // so long before the request
	NotBeforeMs         int64 `json:"not_before_ms"` // the answer does not come sooner than that after it
	Setup               bool  // it only prepares the case
	Optional            bool  // it only looks, and is left out where the target does not offer the request
	Expect              []Constraint
	Keep                map[string]Kept
	Retry               []int64
	Free                *Free // how it may end besides, by what the protocol leaves free
	Otherwise           *Step // what does as well where the target does not offer the request
	Awaited             []struct {
		Client string
		Expect []Constraint
		Keep   map[string]Kept
	}
}

// Kept is where an answer has a value that later steps need.
type Kept struct {
	Path     string
	Versions []int
}

// Exchange is a request and its answer, as they were: for people.
type Exchange struct {
	Client, API string
	Version     int
	Words       string `json:"words"`
	Sent        string `json:"sent"`               // hexadecimal digits
	Answered    string `json:"answered,omitempty"` // the same, without the length
	Fields      any    `json:"fields,omitempty"`   // of the answer
	Wrong       string `json:"wrong,omitempty"`
}

// Target is an address, the limit for one step, what it offers by the keys of APIs, and the layouts of its answers.
type Target struct {
	Address string
	limit   time.Duration
	offered map[int][2]int
	suite   *Suite
	run     string // it tells names of topics from those of other runs
	named   atomic.Int64
	restart func() error // nil: it cannot be restarted
	start   func() error // nil: it cannot be started again where it has ended
}

const mostBytes = 64 << 20

func (suite *Suite) pause(ms int64) { time.Sleep(time.Duration(ms) * time.Millisecond) }

var errSlow = errors.New("it does not answer in time")

// notSupported says why a case cannot be run on this target.
type notSupported string

func (why notSupported) Error() string { return string(why) }

// notApplicable says the same, where the reason is not in what the target offers.
type notApplicable string

func (why notApplicable) Error() string { return string(why) }

// Connection numbers its requests.
type Connection struct {
	net.Conn
	correlation int64
}

func (t *Target) connect() (*Connection, error) {
	found, err := net.DialTimeout("tcp", t.Address, t.limit)
	if err != nil {
		return nil, fmt.Errorf("it does not take a connection: %w", err)
	}
	return &Connection{Conn: found}, nil
}

func (c *Connection) send(data []byte, limit time.Duration) error {
	c.SetDeadline(time.Now().Add(limit))
	_, err := c.Write(data)
	return err
}

// receive gives the next frame, without its length.
func (c *Connection) receive(correlation int64, limit time.Duration) ([]byte, error) {
	c.SetDeadline(time.Now().Add(limit))
	head := make([]byte, 4)
	if _, err := io.ReadFull(c, head); err != nil {
		return nil, inWords(err)
	}
	size := int32(binary.BigEndian.Uint32(head))
	if size < 4 || size > mostBytes {
		return nil, fmt.Errorf("it announces an answer of %d bytes", size)
	}
	frame := make([]byte, size)
	if _, err := io.ReadFull(c, frame); err != nil {
		return nil, inWords(err)
	}
	if found := int64(int32(binary.BigEndian.Uint32(frame))); found != correlation {
		return nil, fmt.Errorf("it answers with correlation id %d, not %d", found, correlation)
	}
	return frame, nil
}

func inWords(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errSlow
	}
	return errors.New("it has closed the connection")
}

// version is the highest that both sides have.
func (t *Target) version(step *Step) (int, error) {
	if step.Raw {
		return step.Versions[0], nil
	}
	offered, is := t.offered[step.Key]
	version := min(step.Versions[1], offered[1])
	if !is || version < max(step.Versions[0], offered[0]) {
		return 0, notSupported(fmt.Sprintf("%s %v is needed, and %v is offered", step.API, step.Versions, offered))
	}
	return version, nil
}

// Pending is a request whose answer comes with a later step.
type Pending struct {
	step        *Step
	version     int
	correlation int64
}

// Run is a case that is being run.
type Run struct {
	target      *Target
	known       Known
	connections map[string]*Connection
	pending     map[string]Pending
	liberties   []string // what was unlike Apache Kafka, and is free
	log         []Exchange
	restart     func() error
	leftOut     []string // looks that the target does not offer
}

// liberty is a case that is not as Apache Kafka's, as the protocol leaves it free.
type liberty string

func (why liberty) Error() string { return string(why) }

// takeAll takes a case to its end, or to the first step that is not as expected. `restart` waits until the target was restarted.
func (t *Target) takeAll(one *Case, known Known, restart func() error) (*Run, error) {
	run := Run{t, known, map[string]*Connection{}, map[string]Pending{}, nil, nil, restart, nil}
	defer run.close()
	err := run.all(one)
	return &run, err
}

func (run *Run) close() {
	for client, connection := range run.connections {
		connection.Close()
		delete(run.connections, client)
	}
}

func (run *Run) all(one *Case) error {
	t := run.target
	var steps []*Step
	for number := range one.Steps { // first, so that a case that cannot be run to its end is not begun
		step := &one.Steps[number]
		_, err := t.version(step)
		if err != nil && step.Otherwise != nil {
			step = step.Otherwise
			_, err = t.version(step)
		}
		if err != nil && step.Optional {
			run.leftOut = append(run.leftOut, step.API)
			continue
		}
		if err != nil {
			return err
		}
		steps = append(steps, step)
	}
	for _, step := range steps {
		if err := run.take(step); err != nil {
			return err
		}
	}
	if err := run.endQuietly(); err != nil || run.liberties == nil {
		return err
	}
	return liberty(strings.Join(run.liberties, "; "))
}

// take sends a request until its answer is as expected, or is none after which clients ask again.
func (run *Run) take(step *Step) error {
	if step.Restart {
		run.close()
		if err := run.restart(); err != nil {
			return err
		}
	}
	run.target.suite.pause(step.PauseMs)
	for end := time.Now().Add(run.target.limit); ; run.target.suite.pause(run.target.suite.Timing.RetryPauseMs) {
		run.log = append(run.log, Exchange{Client: step.Client, API: step.API, Words: step.Words})
		again, err := run.once(step)
		if err == nil {
			break
		}
		run.last().Wrong = err.Error()
		if !again || time.Now().After(end) {
			return err
		}
		run.log = run.log[:len(run.log)-1]
	}
	return run.await(step, false)
}

// await takes the answers to earlier requests: of the client itself, whose come before its own, or of others.
func (run *Run) await(step *Step, own bool) error {
	for _, awaited := range step.Awaited {
		if own != (awaited.Client == step.Client) {
			continue
		}
		before := run.pending[awaited.Client]
		delete(run.pending, awaited.Client)
		run.log = append(run.log, Exchange{Client: awaited.Client, API: before.step.API, Version: before.version, Words: "its answer comes"})
		frame, err := run.connections[awaited.Client].receive(before.correlation, run.target.limit)
		if err == nil {
			_, err = run.look(before.step.API, before.version, frame, awaited.Expect, awaited.Keep)
		}
		if err != nil {
			run.last().Wrong = err.Error()
			return err
		}
	}
	return nil
}

func (run *Run) last() *Exchange { return &run.log[len(run.log)-1] }

// once sends a request. If what comes is not as expected, it says whether to send it again.
func (run *Run) once(step *Step) (again bool, err error) {
	target := run.target
	version, _ := target.version(step)
	connection := run.connections[step.Client]
	if connection == nil {
		if connection, err = target.connect(); err != nil {
			return false, err
		}
		run.connections[step.Client] = connection
	}
	connection.correlation++
	correlation := connection.correlation
	run.known["correlation_id"] = correlation
	body, err := run.known.render(step.Bytes[fmt.Sprint(version)])
	if err != nil {
		return false, run.lacks(err)
	}
	if !step.Raw {
		body = append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	run.last().Version, run.last().Sent = version, hex.EncodeToString(body)
	sent := time.Now()
	if err := connection.send(body, target.limit); err != nil {
		return false, inWords(err)
	}
	if err := run.await(step, true); err != nil {
		return false, err
	}
	switch step.Ending {
	case "closed":
		_, err := connection.Read(make([]byte, 1))
		if errors.Is(err, os.ErrDeadlineExceeded) && step.Free != nil {
			run.liberties = append(run.liberties, "it does not close the connection: "+step.Free.Why)
			if step.Free.Ending == "silent" { // the request had no answer, and the next one has
				_, err := target.probe(connection)
				return false, err
			}
		}
		connection.Close()
		delete(run.connections, step.Client)
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) && step.Free == nil {
			return false, errors.New("it does not close the connection")
		}
		return false, nil
	case "silent": // the answer to the next request comes next, so this one had none
		_, err := target.probe(connection)
		return false, err
	case "later":
		run.pending[step.Client] = Pending{step, version, correlation}
		target.suite.pause(target.suite.Timing.LaterPauseMs) // other clients' requests come after it
		return false, nil
	}
	frame, err := connection.receive(correlation, target.limit)
	if err != nil {
		return false, err
	}
	if waited := time.Since(sent); waited < time.Duration(step.NotBeforeMs)*time.Millisecond {
		return false, fmt.Errorf("it answers after %v, not after %d ms or more", waited, step.NotBeforeMs)
	}
	answer, err := run.look(step.API, version, frame, step.Expect, step.Keep)
	return err != nil && step.retries(answer, run.known), err
}

// look compares an answer, and keeps what later steps need of it.
func (run *Run) look(api string, version int, frame []byte, expect []Constraint, keep map[string]Kept) (any, error) {
	run.last().Answered = hex.EncodeToString(frame)
	answer, err := readAnswer(run.target.suite.Layouts[api][fmt.Sprint(version)], frame)
	run.last().Fields = answer
	if err != nil {
		return nil, err
	}
	if wrong := differences(expect, version, answer, run.known); wrong != nil {
		return answer, errors.New(strings.Join(wrong, "; "))
	}
	run.liberties = append(run.liberties, liberties(expect, version, answer, run.known)...)
	for name, where := range keep {
		if !has(where.Versions, version) {
			continue
		}
		found, is := at(answer, where.Path, run.known)
		if !is {
			return answer, fmt.Errorf("its answer does not tell %s, which later requests need", where.Path)
		}
		run.known[name] = found
	}
	if epoch, is := run.known["epoch_0"].(int64); is && epoch > 0 {
		run.known["older_epoch"] = epoch - 1
	}
	return answer, nil
}

// retries tells whether the protocol asks clients to send such a request again.
func (step *Step) retries(answer any, known Known) bool {
	for _, one := range step.Expect {
		code, is := at(answer, one.Path, known)
		if number, isNumber := code.(int64); is && isNumber && strings.HasSuffix(one.Path, "error_code") && slices.Contains(step.Retry, number) {
			return true
		}
	}
	return false
}

// lacks tells why a request cannot be made.
func (run *Run) lacks(err error) error {
	var hole unknownHole
	if !errors.As(err, &hole) {
		return err
	}
	if _, is := run.known["epoch_0"]; is && hole == "older_epoch" {
		return notApplicable("no leader epoch is over: the target begins none when it restarts")
	}
	return notSupported(err.Error() + " in the versions that the target offers")
}

// endQuietly waits a little: who is to wait at the end gets no answer soon.
func (run *Run) endQuietly() error {
	quiet := time.Duration(run.target.suite.Timing.QuietMs) * time.Millisecond
	for client, before := range run.pending {
		if _, err := run.connections[client].receive(before.correlation, quiet); err != errSlow {
			return fmt.Errorf("%s of client %s does not wait, as it should", before.step.API, client)
		}
	}
	return nil
}
