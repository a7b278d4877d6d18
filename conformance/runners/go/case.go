package main

// One case: its steps in order, each client on a connection of its own.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

// Case is a file of `kspec conformance generate`. Members that a runner does not need are left out.
type Case struct {
	Name  string
	Steps []Step
}

// Step is a request, and what must come of it.
type Step struct {
	Client, API, Ending string
	Key                 int
	Versions            []int
	Bytes               map[string][]any
	Raw, Restart        bool
	Setup               bool // it only prepares the case
	Optional            bool // it only looks, and is left out where the target does not offer the request
	Expect              []Constraint
	Keep                map[string]Kept
	Retry               []int64
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

// Target is an address, the limit for one step, what it offers by the keys of APIs, and the layouts of its answers.
type Target struct {
	address string
	limit   time.Duration
	offered map[int][2]int
	suite   *Suite
}

const (
	retryPause = 50 * time.Millisecond
	laterPause = 100 * time.Millisecond // other clients' requests come after one that waits
	quiet      = 300 * time.Millisecond // how long an answer that must not come is waited for
	mostBytes  = 64 << 20
)

var errSlow = errors.New("it does not answer in time")

// notSupported says why a case cannot be run on this target.
type notSupported string

func (why notSupported) Error() string { return string(why) }

// Connection numbers its requests.
type Connection struct {
	net.Conn
	correlation int64
}

func (t *Target) connect() (*Connection, error) {
	found, err := net.DialTimeout("tcp", t.address, t.limit)
	return &Connection{Conn: found}, err
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
}

// run takes a case to its end, or to the first step that is not as expected.
func (t *Target) run(one *Case, known Known) error {
	run := Run{t, known, map[string]*Connection{}, map[string]Pending{}}
	defer func() {
		for _, connection := range run.connections {
			connection.Close()
		}
	}()
	var steps []*Step
	for number := range one.Steps { // first, so that a case that cannot be run to its end is not begun
		step := &one.Steps[number]
		_, err := t.version(step)
		if err != nil && step.Otherwise != nil {
			step = step.Otherwise
			_, err = t.version(step)
		}
		if err != nil && step.Optional {
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
	return run.endQuietly()
}

// take sends a request until its answer is as expected, or is none after which clients ask again.
func (run *Run) take(step *Step) error {
	for end := time.Now().Add(run.target.limit); ; time.Sleep(retryPause) {
		again, err := run.once(step)
		if err == nil {
			break
		}
		if !again || time.Now().After(end) {
			return err
		}
	}
	for _, awaited := range step.Awaited {
		before := run.pending[awaited.Client]
		delete(run.pending, awaited.Client)
		frame, err := run.connections[awaited.Client].receive(before.correlation, run.target.limit)
		if err != nil {
			return err
		}
		if _, err := run.look(before.step.API, before.version, frame, awaited.Expect, awaited.Keep); err != nil {
			return err
		}
	}
	return nil
}

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
		return false, notSupported(err.Error())
	}
	if !step.Raw {
		body = append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	if err := connection.send(body, target.limit); err != nil {
		return false, inWords(err)
	}
	switch step.Ending {
	case "closed":
		_, err := connection.Read(make([]byte, 1))
		connection.Close()
		delete(run.connections, step.Client)
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return false, errors.New("it does not close the connection")
		}
		return false, nil
	case "silent": // the answer to the next request comes next, so this one had none
		_, err := target.probe(connection)
		return false, err
	case "later":
		run.pending[step.Client] = Pending{step, version, correlation}
		time.Sleep(laterPause)
		return false, nil
	}
	frame, err := connection.receive(correlation, target.limit)
	if err != nil {
		return false, err
	}
	answer, err := run.look(step.API, version, frame, step.Expect, step.Keep)
	return err != nil && step.retries(answer), err
}

// look compares an answer, and keeps what later steps need of it.
func (run *Run) look(api string, version int, frame []byte, expect []Constraint, keep map[string]Kept) (any, error) {
	answer, err := readAnswer(run.target.suite.Layouts[api][fmt.Sprint(version)], frame)
	if err != nil {
		return nil, err
	}
	if wrong := differences(expect, version, answer, run.known); wrong != nil {
		return answer, errors.New(strings.Join(wrong, "; "))
	}
	for name, where := range keep {
		if found, is := at(answer, where.Path); is && has(where.Versions, version) {
			run.known[name] = found
		}
	}
	if epoch, is := run.known["epoch_0"].(int64); is && epoch > 0 {
		run.known["older_epoch"] = epoch - 1
	}
	return answer, nil
}

// retries tells whether the protocol asks clients to send such a request again.
func (step *Step) retries(answer any) bool {
	for _, one := range step.Expect {
		code, is := at(answer, one.Path)
		if number, isNumber := code.(int64); is && isNumber && strings.HasSuffix(one.Path, "error_code") && slices.Contains(step.Retry, number) {
			return true
		}
	}
	return false
}

// endQuietly waits a little: who is to wait at the end gets no answer soon.
func (run *Run) endQuietly() error {
	for client, before := range run.pending {
		if _, err := run.connections[client].receive(before.correlation, quiet); err != errSlow {
			return fmt.Errorf("%s of client %s does not wait, as it should", before.step.API, client)
		}
	}
	return nil
}
