// Members of groups by sarama, which has the classic protocol only; trials/faults/members/load.py says what they print.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

var (
	servers, topic string
	pause, stays   time.Duration
	staying        atomic.Bool
	stopping       atomic.Bool
	printing       sync.Mutex
)

func say(fields ...any) {
	printing.Lock()
	defer printing.Unlock()
	told := []string{fmt.Sprint(time.Now().UnixMilli())}
	for _, field := range fields {
		told = append(told, strings.ReplaceAll(fmt.Sprint(field), "\n", " "))
	}
	fmt.Println(strings.Join(told, "\t"))
}

type member struct {
	name, protocol string
	number, turn   int64
	random         *rand.Rand
	client         sarama.Client
	over           context.Context
}

func (m *member) group() string { return topic + "-" + m.protocol }

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	for _, partition := range session.Claims()[topic] {
		say("owns", m.name, partition)
	}
	return nil
}

func (m *member) Cleanup(session sarama.ConsumerGroupSession) error {
	for _, partition := range session.Claims()[topic] {
		say("gives", m.name, partition)
	}
	return nil
}

// ConsumeClaim commits by a request of its own: the library's own commits are told to nobody.
func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case <-claim.Messages():
		case <-session.Context().Done():
			return nil
		case <-m.over.Done():
			return nil
		case <-time.After(pause):
		}
		m.commit(session, claim.Partition())
	}
}

func (m *member) commit(session sarama.ConsumerGroupSession, partition int32) {
	offset := atomic.AddInt64(&m.turn, 1)*1000 + m.number
	request := &sarama.OffsetCommitRequest{
		Version:                 2,
		ConsumerGroup:           m.group(),
		ConsumerGroupGeneration: session.GenerationID(),
		ConsumerID:              session.MemberID(),
		RetentionTime:           -1,
	}
	request.AddBlock(topic, partition, offset, 0, "")
	say("commits", m.name, partition, offset)
	kind, failed := "unknown", "no answer"
	coordinator, err := m.client.Coordinator(m.group())
	if err == nil {
		var answer *sarama.OffsetCommitResponse
		answer, err = coordinator.CommitOffset(request)
		if err == nil {
			told, there := answer.Errors[topic][partition]
			switch {
			case there && told == sarama.ErrNoError:
				kind, failed = "acknowledged", ""
			case there:
				err = told
			}
		} else {
			_ = coordinator.Close()
		}
	}
	if err != nil {
		failed = err.Error()
		_ = m.client.RefreshCoordinator(m.group())
	}
	say("committed", m.name, partition, offset, kind, failed)
}

func (m *member) live() error {
	settings := sarama.NewConfig()
	settings.Version = sarama.V2_8_0_0
	settings.ClientID = m.name
	settings.Consumer.Offsets.AutoCommit.Enable = false
	settings.Consumer.Offsets.Initial = sarama.OffsetNewest
	settings.Consumer.Group.Session.Timeout = 10 * time.Second
	settings.Consumer.Group.Heartbeat.Interval = 2 * time.Second
	settings.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	settings.Metadata.RefreshFrequency = 2 * time.Second
	settings.Net.ReadTimeout = 15 * time.Second
	client, err := sarama.NewClient(strings.Split(servers, ","), settings)
	if err != nil {
		return err
	}
	defer client.Close()
	m.client = client
	group, err := sarama.NewConsumerGroupFromClient(m.group(), client)
	if err != nil {
		return err
	}
	defer group.Close()
	leaves := time.Now().Add(time.Duration(float64(stays) * (1 + 2*m.random.Float64())))
	over, end := context.WithCancel(context.Background())
	defer end()
	m.over = over
	go func() {
		for !stopping.Load() && over.Err() == nil && (staying.Load() || time.Now().Before(leaves)) {
			time.Sleep(50 * time.Millisecond)
		}
		end()
	}()
	for over.Err() == nil {
		if err := group.Consume(over, []string{topic}, m); err != nil && over.Err() == nil {
			return err
		}
	}
	return nil
}

func (m *member) run() {
	for !stopping.Load() {
		if err := m.live(); err != nil {
			say("anew", m.name, err)
			time.Sleep(500 * time.Millisecond)
		}
	}
}

func number(text string) float64 {
	found, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return found
}

func main() {
	given := os.Args[1:]
	servers, topic = given[0], given[1]
	pause = time.Duration(number(given[3])) * time.Millisecond
	stays = time.Duration(number(given[4]) * float64(time.Second))
	var all sync.WaitGroup
	for _, one := range given[5:] {
		parts := strings.Split(one, "=")
		made := &member{name: parts[0], protocol: parts[1], number: int64(number(parts[2]))}
		made.random = rand.New(rand.NewSource(made.number))
		all.Add(1)
		go func() {
			defer all.Done()
			made.run()
		}()
	}
	input := bufio.NewReader(os.Stdin)
	input.ReadString('\n')
	staying.Store(true)
	io.Copy(io.Discard, input)
	stopping.Store(true)
	all.Wait()
}
